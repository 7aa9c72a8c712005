// The dense sum of convolutions; conv_tile.h says what it is.
#include "lockstep/kernels/cpu/conv_tile.h"

namespace lockstep::cpu::LOCKSTEP_CPU_SET {
namespace {

/// Some taps of a sum, at least one, for one tile of outputs and one row. The sums start from
/// vectors in memory: the bias, or what taps before these have added up to.
struct RowPart {
  Index taps;
  const Index* offset;
  const float* weights;
  Index start_output, start_column;
  Index columns;
  Index in_column, out_column, out_channel;
};

/// `dense`: columns of `in` lie side by side.
template <bool dense, int outputs, int columns>
void tile(const RowPart& part, const float* in, const float* start, float* out) {
  const Index in_step = dense ? kLanes : part.in_column;
  const Index start_output = part.start_output;
  const Index start_column = part.start_column;
  Floats total[outputs][columns];
#pragma GCC unroll 8
  for (int i = 0; i < outputs; ++i) {
#pragma GCC unroll 12
    for (int j = 0; j < columns; ++j)
      total[i][j] = load(start + i * start_output + j * start_column);
  }
  const float* weights = part.weights;
  const Index* offset = part.offset;
  const Index* const end = offset + part.taps;
  do {  // so that the sums never leave the registers
    add_tap(total, in + *offset, in_step, weights);
    weights += outputs;
  } while (++offset != end);
  const Index out_step = part.out_column;
  const Index out_channel = part.out_channel;
#pragma GCC unroll 8
  for (int i = 0; i < outputs; ++i) {
#pragma GCC unroll 12
    for (int j = 0; j < columns; ++j) store(out + i * out_channel + j * out_step, total[i][j]);
  }
}

template <bool dense, int outputs, int columns = tile_columns(outputs)>
void tile_of_columns(Index wanted, const RowPart& part, const float* in, const float* start,
                     float* out) {
  if constexpr (columns > 1) {
    if (wanted < columns) {
      return tile_of_columns<dense, outputs, columns - 1>(wanted, part, in, start, out);
    }
  }
  tile<dense, outputs, columns>(part, in, start, out);
}

/// The columns of a row, in tiles of nearly equal widths.
template <bool dense, int outputs>
void row_of_tiles(const RowPart& part, const float* in, const float* start, float* out) {
  constexpr Index kColumns = tile_columns(outputs);
  Index done = 0;
  for (Index tiles = (part.columns + kColumns - 1) / kColumns; tiles > 0; --tiles) {
    const Index width = (part.columns - done + tiles - 1) / tiles;
    tile_of_columns<dense, outputs>(width, part, in + done * part.in_column,
                                    start + done * part.start_column, out + done * part.out_column);
    done += width;
  }
}

template <int outputs = kMostTileOutputs>
void row_of_outputs(Index wanted, const RowPart& part, const float* in, const float* start,
                    float* out) {
  if constexpr (outputs > 1) {
    if (wanted < outputs) return row_of_outputs<outputs - 1>(wanted, part, in, start, out);
  }
  if (part.in_column == kLanes) {
    row_of_tiles<true, outputs>(part, in, start, out);
  } else {
    row_of_tiles<false, outputs>(part, in, start, out);
  }
}

}  // namespace

TapSum forward_sum(const WindowGeometry& g, const Image& in, const float* w, const float* b,
                   Index rows, const Workspace& space) {
  const Index taps = x_tap_offsets(g, in, space.offsets);
  float* packed = space.weights;
  for (Index k = 0, outputs = 0; k < g.k; k += outputs) {
    outputs = tile_outputs(g.k, k);
    packed = pack_tile(taps, outputs, w + k * taps, packed);
  }
  for (Index k = 0; b && k < g.k; ++k) store(space.bias + k * kLanes, broadcast(b[k]));
  return {.taps = taps,
          .outputs = g.k,
          .columns = g.q,
          .taps_at_once =
              cached_taps(g.kernel_h + (rows - 1) * g.stride_h, in.w, g.kernel_h * g.kernel_w),
          .offset = space.offsets,
          .weights = space.weights,
          .bias = b ? space.bias : nullptr,
          .in_row = g.stride_h * in.row,
          .in_column = g.stride_w * kLanes,
          .out_channel = 0,
          .out_row = 0,
          .out_column = 0};
}

void sum_tile(const TapSum& sum, Index output, Index first, Index rows, const float* in,
              float* out) {
  alignas(64) static constexpr float kNoBias[kLanes] = {};
  const Index outputs = tile_outputs(sum.outputs, output);
  const bool begun = first > 0;
  const bool biased = sum.bias != nullptr;
  const RowPart part{.taps = smaller(sum.taps - first, sum.taps_at_once),
                     .offset = sum.offset + first,
                     .weights = sum.weights + output * sum.taps + first * outputs,
                     .start_output = begun ? sum.out_channel : (biased ? kLanes : 0),
                     .start_column = begun ? sum.out_column : 0,
                     .columns = sum.columns,
                     .in_column = sum.in_column,
                     .out_column = sum.out_column,
                     .out_channel = sum.out_channel};
  const float* bias = biased ? sum.bias + output * kLanes : kNoBias;
  for (Index row = 0; row < rows; ++row, in += sum.in_row, out += sum.out_row) {
    row_of_outputs(outputs, part, in, begun ? out : bias, out);
  }
}

void sum_rows(const TapSum& sum, Index rows, const float* in, float* out) {
  Index first = 0;
  do {
    for (Index i = 0; i < sum.outputs; i += tile_outputs(sum.outputs, i)) {
      sum_tile(sum, i, first, rows, in, out + i * sum.out_channel);
    }
    first += sum.taps_at_once;
  } while (first < sum.taps);
}

}  // namespace lockstep::cpu::LOCKSTEP_CPU_SET
