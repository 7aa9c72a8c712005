// The dense sum of convolutions, for a vector of samples:
//
//   out(i, row, column) = bias(i) + sum over taps t of weight(i, t) * in[row * in_row + column *
//   in_column + offset(t)]
//
//                 columns (vectors of samples)
//               v0     v1     v2        A tile keeps outputs x columns sums in registers and runs
//         w0    +=     +=     +=        through the taps. Of every tap it loads one vector a column
//   out-  w1    +=     +=     +=        and one weight an output (in all lanes), and multiplies
//   puts  w2    +=     +=     +=        every vector by every weight: 12 multiply-adds for 7 loads
//         w3    +=     +=     +=        with 16 registers, 24 for 10 with 32.
//
// A tap is one place of the kernel in one input channel. `in` has a border of zeros (conv_image.h),
// so a tap is a fixed distance in memory and no loop asks where the image ends. The weights are
// packed so that a tile reads them in a row. Where the input rows of all channels are larger than
// the first-level cache, the taps are taken in parts that fit, and the sums wait in `out`.
#pragma once

#include "lockstep/kernels/cpu/conv_image.h"

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

/// At least one tap. Distances are in floats.
struct TapSum {
  Index taps, outputs, columns;
  Index taps_at_once;    ///< of which the input stays in the cache
  const Index* offset;   ///< (taps)
  const float* weights;  ///< [tiles of outputs][taps][outputs of the tile]
  const float* bias;     ///< [outputs][lanes] or null
  Index in_row, in_column;
  Index out_channel, out_row, out_column;
};

/// Outputs of the tile that begins at `first`: four are best, and five or six better than four and
/// a small rest.
LOCKSTEP_INLINE Index tile_outputs(Index outputs, Index first) {
  const Index left = outputs - first;
  return left == 5 || left == 6 ? left : smaller(left, 4);
}
constexpr int kMostTileOutputs = 6;

/// The weights of a tile in the order of its walk, [taps][outputs], from w (outputs, taps); returns
/// where the next tile's go.
LOCKSTEP_INLINE float* pack_tile(Index taps, Index outputs, const float* w, float* packed) {
  for (Index t = 0; t < taps; ++t) {
    for (Index i = 0; i < outputs; ++i) *packed++ = w[i * taps + t];
  }
  return packed;
}

/// Columns of a tile, by its outputs: as many as the registers hold beside a weight and, when there
/// is more than one output, the vectors loaded.
constexpr int tile_columns(int outputs) {
  constexpr int kWide[] = {0, 12, 8, 7, 6, 4, 4};
  constexpr int kNarrow[] = {0, 8, 4, 3, 3, 2, 2};
  constexpr int kBaseline[] = {0, 8, 4, 3, 2, 2, 1};
  return kLanes == 16 ? kWide[outputs] : kLanes == 8 ? kNarrow[outputs] : kBaseline[outputs];
}

/// Taps whose input rows fit the cache, a whole number of channels: `rows` rows of `columns` places
/// a channel with `taps` taps each.
LOCKSTEP_INLINE Index cached_taps(Index rows, Index columns, Index taps) {
  return larger(1, kCacheFloats / (rows * columns * kLanes)) * taps;
}

/// The forward pass of a convolution: packs the weights, fills in space.offsets. `in` is x with its
/// border; `rows` rows of outputs are computed at once. The caller fills in where they go.
TapSum forward_sum(const WindowGeometry& g, const Image& in, const float* w, const float* b,
                   Index rows, const Workspace& space);

/// The taps from `first` on that are taken at once, for `rows` rows of the tile of outputs that
/// begins at `output`; the first taps overwrite `out` (that tile's), later ones add.
void sum_tile(const TapSum& sum, Index output, Index first, Index rows, const float* in,
              float* out);

/// `rows` rows of all outputs.
void sum_rows(const TapSum& sum, Index rows, const float* in, float* out);

}  // namespace lockstep::cpu::LOCKSTEP_CPU_SET
