// The sums of a convolution in registers, for places along a line.
//
//                 places (vectors of samples)
//               v0     v1     v2        A tile keeps outputs x places sums in registers and runs
//         w0    +=     +=     +=        through the taps. Of every tap it loads one vector a place
//   out-  w1    +=     +=     +=        and one weight an output (in all lanes), and multiplies
//   puts  w2    +=     +=     +=        every vector by every weight: 12 multiply-adds for 7 loads
//         w3    +=     +=     +=        with 16 registers, 24 for 11 with 32.
//
// A tap is one place of the kernel in one input channel, a fixed distance in memory from the place
// that is summed. The weights are packed so that a tile reads them in a row.
#pragma once

#include "lockstep/kernels/cpu/numbers.h"

namespace lockstep::cpu::LOCKSTEP_CPU_SET {

/// One tap of a tile: every vector of `in`, `step` floats apart, times every weight.
template <int outputs, int columns>
LOCKSTEP_INLINE void add_tap(Floats (&total)[outputs][columns], const float* in, Index step,
                             const float* weights) {
  Floats value[columns];
#pragma GCC unroll 12
  for (int j = 0; j < columns; ++j) value[j] = load(in + j * step);
#pragma GCC unroll 8
  for (int i = 0; i < outputs; ++i) {
    const Floats weight = broadcast(weights[i]);
#pragma GCC unroll 12
    for (int j = 0; j < columns; ++j) total[i][j] += value[j] * weight;
  }
}

/// The most outputs of a tile.
constexpr int kTileOutputs = kLanes == 16 ? 8 : 6;

/// Outputs of the tile that begins at `first`. With 32 registers tiles are of nearly equal sizes;
/// with 16, four outputs are best, and five or six better than four and a small rest.
LOCKSTEP_INLINE Index tile_outputs(Index outputs, Index first) {
  const Index left = outputs - first;
  if (kLanes == 16) {
    const Index tiles = (left + kTileOutputs - 1) / kTileOutputs;
    return (left + tiles - 1) / tiles;
  }
  return left == 5 || left == 6 ? left : smaller(left, 4);
}

/// Columns of a tile, by its outputs: as many as the registers hold beside a weight and, when there
/// is more than one output, the vectors loaded.
constexpr int tile_columns(int outputs) {
  constexpr int kWide[] = {0, 12, 8, 7, 6, 5, 4, 3, 3};
  constexpr int kNarrow[] = {0, 8, 4, 3, 3, 2, 2, 0, 0};
  constexpr int kBaseline[] = {0, 8, 4, 3, 2, 2, 1, 0, 0};
  return kLanes == 16 ? kWide[outputs] : kLanes == 8 ? kNarrow[outputs] : kBaseline[outputs];
}

/// Places along a line that have the same taps, for one tile of outputs: `runs` runs of `length`
/// taps, with `gap` taps between two runs.
struct Strip {
  const float* input;
  Index runs, length, gap;
  const Index* offset;
  const float* weights;
  const float* bias;  ///< or null
  bool begun;         ///< the sums start from `out`, else from the bias or 0
  Index places;
  Index in_step, out_step;  ///< from place to place
  Index out_channel;
  /// So many taps of a run lie side by side as the places do: one place's tap is another's next.
  Index side_by_side;
};

/// The sums of a strip's places for a group's samples, for the `outputs` of a tile. `at` is the
/// first place's distance from the input, to which those of the taps are added: by itself it may
/// lie beyond the edge.
void sum_strip(const Strip& strip, Index outputs, Index at, float* out);

}  // namespace lockstep::cpu::LOCKSTEP_CPU_SET
