// The dense sum of convolutions:
//
//   out(i, p, q) = bias(i) + sum over c, r, s of weight(i, c, r, s) * in(c, y(p, r), x(q, s))
//
// `in` is read where it lies. Taps beyond its edge are left out: those inside are a range along
// each axis, the same one for all places that are not near an edge.
//
//      +---+---------------+---+     Inner columns, where the whole kernel row is inside, are
//      | e | row ------->  | e |     summed row by row (conv_tile.h). Those at the edges lack
//      | d | row ------->  | d |     taps, each of them others: they are summed down the image.
//      | g | row ------->  | g |
//      | e | row ------->  | e |
//      +---+---------------+---+
//
// Weights and a table of distances are in the order of the walk, row by row of the kernel, so that
// rows beyond the edge leave one run of taps, and columns beyond it many short ones:
//
//   kernel row 0                       kernel row 1         ...
//   [c0: s0 s1 s2 | c1: s0 s1 s2 | ..] [c0: s0 s1 s2 | ..]
//
// Where there are many channels they are taken in parts whose rows of input stay in a near cache,
// and the sums wait in `out`.
#pragma once

#include <cstddef>

#include "lockstep/kernels/cpu/conv_axis.h"
#include "lockstep/kernels/cpu/kernels.h"

namespace lockstep::cpu::LOCKSTEP_CPU_SET {

/// Where the weights of a sum lie: the distances, in floats, from one output, channel, row and
/// column of the taps to the next.
struct Filters {
  const float* data;
  Index output, channel, row, column;
};

/// Distances are in floats. Columns of `in` are a group apart.
struct TapSum {
  Axis vertical, horizontal;
  Index channels, outputs;
  Index channels_at_once;
  Index in_channel, in_row;
  Index out_channel, out_row, out_column;
  const Index* offset;   ///< (taps) from the first tap's place to this tap's
  const float* weights;  ///< [tiles of outputs][taps][outputs of the tile]
  const float* bias;     ///< (outputs) or null
};

/// Channels to sum over at once, of which a row of sums reads `rows` rows.
Index channels_at_once(Index outputs, Index rows, Index in_row, Index in_channel);

/// What pack() needs for a sum of a convolution.
std::size_t tap_sum_bytes(const WindowGeometry& g);

/// Writes the table of distances and the packed weights to `workspace` and points `sum` to them.
void pack(TapSum& sum, const Filters& filters, void* workspace);

/// The forward pass of a convolution, packed; `rows` rows of outputs are computed at once. They go
/// to y, unless the caller says where else.
TapSum forward_sum(const WindowGeometry& g, const float* w, const float* b, Index rows,
                   void* workspace);

/// The channels from `channel` on that are taken at once, for `rows` rows of outputs from `row` on
/// of the tile of outputs that begins at `output`: `out` is that tile's first row. The first
/// channels overwrite it, later ones add. `in` is a group's input.
void sum_tile(const TapSum& sum, Index output, Index channel, Index row, Index rows,
              const float* in, float* out);

/// All rows of all outputs of a group.
void sum_group(const TapSum& sum, const float* in, float* out);

}  // namespace lockstep::cpu::LOCKSTEP_CPU_SET
