// Convolution's gradients of weights and bias; conv_parameters.cpp says how.
#pragma once

#include "lockstep/kernels/cpu/kernels.h"
#include "lockstep/kernels/cpu/numbers.h"

namespace lockstep::cpu::LOCKSTEP_CPU_SET {

void conv_backward_parameters(const WindowGeometry& g, const float* x, const float* dy, float* dw,
                              float* db, bool accumulate, void* workspace);
std::size_t conv_backward_parameters_bytes(const WindowGeometry& g);

/// The sums of the lanes of `count` vectors, written to `to` or added.
void sum_vectors(Index count, const float* vectors, float* to, bool add);

}  // namespace lockstep::cpu::LOCKSTEP_CPU_SET
