// The dense sums of a convolution's weight gradients; conv_parameters.cpp says how.
#pragma once

#include "lockstep/kernels/cpu/conv_image.h"

namespace lockstep::cpu::LOCKSTEP_CPU_SET {

/// Rows of positions, and how far apart places are in x and dy, in floats. A place has `parts`
/// vectors of samples.
struct Positions {
  int parts;
  Index rows, columns;
  Index x_row, x_column;
  Index dy_channel, dy_row, dy_column;
};

/// Writes the sums over some positions to `sums`, [outputs][taps][lanes], or adds them.
void add_parameter_sums(const Positions& some, Index outputs, const float* x, const Index* offsets,
                        const float* dy, Index taps, float* sums, bool add);

/// The sums of the lanes of `count` vectors, written to `to` or added.
void sum_vectors(Index count, const float* vectors, float* to, bool add);

}  // namespace lockstep::cpu::LOCKSTEP_CPU_SET
