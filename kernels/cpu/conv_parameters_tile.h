// A tile of convolution's gradients of weights and bias.
//
//             taps (c, s) of a kernel row
//             t0    t1    t2          A tile keeps outputs x taps sums in registers while it runs
//         k0  +=    +=    +=          over some rows of positions, and loads a vector an output and
//   out-  k1  +=    +=    +=          a vector a tap for every position: 10 loads for 24
//   puts  k2  +=    +=    +=          multiply-adds with 32 registers, 7 for 12 with 16. In between
//         k3  +=    +=    +=          the sums wait in memory, a vector each: lanes are samples and
//                                     stay apart until the end.
#pragma once

#include "lockstep/kernels/cpu/numbers.h"

namespace lockstep::cpu::LOCKSTEP_CPU_SET {

/// Rows of positions, and how far apart places are in x and dy, in floats.
struct Positions {
  Index rows, columns;
  Index x_row, x_column;
  Index dy_channel, dy_row;
};

/// Sums in memory, a vector each: [outputs][all taps of a filter], and of the bias [outputs].
struct Sums {
  float* weights;
  float* bias;   ///< null: not now
  Index filter;  ///< floats from one output to the next in `weights`
  bool begun;    ///< add to them; else overwrite them
};

/// Taps that are summed together: where each reads x, and where its sum waits, in floats.
struct Taps {
  Index count;
  const Index* x;
  const Index* sum;
};

/// Outputs of the tile that begins at `first`.
Index gradient_outputs(Index outputs, Index first);

/// Of so many outputs most tiles are.
constexpr Index kUsualOutputs = 4;

/// All taps for the `outputs` of a tile, at one or more positions. The bias gradient rides along
/// with the first taps.
void sum_taps(Index outputs, const Positions& some, const float* x, const float* dy, Taps taps,
              const Sums& sums);

}  // namespace lockstep::cpu::LOCKSTEP_CPU_SET
