// Convolution on groups of 16 samples: output and data gradient, both by one sum.
//
//   out(i, row, column) = bias(i) + sum over taps t of weight(i, t) * in[row * in_row + column *
//   in_column + offset(t)]
//
// A tap is one place of the kernel in one input channel. `in` has a border of zeros (conv_image.h),
// so a tap is a fixed distance in memory and no loop asks where the image ends. Forward, taps are
// (c,r,s) over x. The data gradient is the same over dy with the taps (k,r,s): place h of x takes
// part in output (h + pad - r) / stride where that is whole, so with strides dx falls into stride_h
// * stride_w interleaved images ("phases"), each with its own taps r, s.
//
// A tile holds kTileOutputs channels by kTileColumns columns of `out` in registers, vectors of
// samples, while it runs through the taps: every vector loaded is used for all channels, every
// weight (in all lanes) for all columns. The weights are packed so that a tile reads them in a row.
#include "lockstep/kernels/cpu/conv_image.h"
#include "lockstep/kernels/cpu/set.h"

namespace lockstep::cpu::LOCKSTEP_CPU_SET {
namespace {

constexpr int kTileOutputs = 4;
constexpr int kTileColumns = kLanes == 16 ? 6 : kLanes == 8 ? 3 : 2;

/// The sum above. Distances are in floats.
struct TapSum {
  Index taps, outputs, rows, columns;
  const Index* offset;   ///< (taps)
  const float* weights;  ///< [tiles of kTileOutputs outputs][taps][outputs of the tile]
  const float* bias;     ///< (outputs) or null
  Index in_row, in_column;
  Index out_channel, out_row, out_column;
};

template <int outputs, int columns>
void tile(const TapSum& sum, const float* weights, const float* bias, const float* in, float* out) {
  Floats total[outputs][columns];
  for (int i = 0; i < outputs; ++i) {
    for (int j = 0; j < columns; ++j) total[i][j] = bias ? broadcast(bias[i]) : Floats{};
  }
  const Index taps = sum.taps;
  const Index in_column = sum.in_column;
  for (Index t = 0; t < taps; ++t) {
    const float* from = in + sum.offset[t];
    Floats value[columns];
#pragma GCC unroll 8
    for (int j = 0; j < columns; ++j) value[j] = load(from + j * in_column);
#pragma GCC unroll 8
    for (int i = 0; i < outputs; ++i) {
      const Floats weight = broadcast(weights[t * outputs + i]);
#pragma GCC unroll 8
      for (int j = 0; j < columns; ++j) total[i][j] += value[j] * weight;
    }
  }
  for (int i = 0; i < outputs; ++i) {
    for (int j = 0; j < columns; ++j)
      store(out + i * sum.out_channel + j * sum.out_column, total[i][j]);
  }
}

template <int outputs, int columns = kTileColumns>
void tile_of_columns(Index wanted, const TapSum& sum, const float* weights, const float* bias,
                     const float* in, float* out) {
  if constexpr (columns > 1) {
    if (wanted < columns)
      return tile_of_columns<outputs, columns - 1>(wanted, sum, weights, bias, in, out);
  }
  tile<outputs, columns>(sum, weights, bias, in, out);
}

/// One row of a tile's outputs, in tiles of nearly equal widths.
template <int outputs>
void row_of_tiles(const TapSum& sum, const float* weights, const float* bias, const float* in,
                  float* out) {
  for (Index part = 0; part < kGroup; part += kLanes) {
    Index column = 0;
    for (Index tiles = (sum.columns + kTileColumns - 1) / kTileColumns; tiles > 0; --tiles) {
      const Index width = (sum.columns - column + tiles - 1) / tiles;
      tile_of_columns<outputs>(width, sum, weights, bias, in + column * sum.in_column + part,
                               out + column * sum.out_column + part);
      column += width;
    }
  }
}

template <int outputs = kTileOutputs>
void row_of_outputs(Index wanted, const TapSum& sum, const float* weights, const float* bias,
                    const float* in, float* out) {
  if constexpr (outputs > 1) {
    if (wanted < outputs) return row_of_outputs<outputs - 1>(wanted, sum, weights, bias, in, out);
  }
  row_of_tiles<outputs>(sum, weights, bias, in, out);
}

Index tile_outputs(Index outputs, Index first) {
  return outputs - first < kTileOutputs ? outputs - first : kTileOutputs;
}

/// Rows are the outer loop: the rows of all input channels that one output row needs stay in the
/// first-level cache.
void run(const TapSum& sum, const float* in, float* out) {
  for (Index row = 0; row < sum.rows; ++row) {
    for (Index i = 0; i < sum.outputs; i += kTileOutputs) {
      row_of_outputs(tile_outputs(sum.outputs, i), sum, sum.weights + i * sum.taps,
                     sum.bias ? sum.bias + i : nullptr, in + row * sum.in_row,
                     out + i * sum.out_channel + row * sum.out_row);
    }
  }
}

void forward(const WindowGeometry& g, const float* x, const float* w, const float* b, float* y,
             void* workspace) {
  const Workspace space = split_workspace(g, workspace);
  const Border border = border_of_x(g);
  const Image image{g.c, g.h, g.w};
  const Image in = with_border(image, border);
  const Index taps = x_tap_offsets(g, space.offsets);
  float* packed = space.weights;
  for (Index k = 0; k < g.k; k += kTileOutputs) {
    for (Index t = 0; t < taps; ++t) {
      for (Index i = 0; i < tile_outputs(g.k, k); ++i) *packed++ = w[(k + i) * taps + t];
    }
  }
  const TapSum sum{.taps = taps,
                   .outputs = g.k,
                   .rows = g.p,
                   .columns = g.q,
                   .offset = space.offsets,
                   .weights = space.weights,
                   .bias = b,
                   .in_row = g.stride_h * in.w * kGroup,
                   .in_column = g.stride_w * kGroup,
                   .out_channel = g.p * g.q * kGroup,
                   .out_row = g.q * kGroup,
                   .out_column = kGroup};
  for (Index group = 0; group < g.groups; ++group) {
    run(sum, bordered(image, border, x + group * floats_in(image), space.image),
        y + group * g.k * sum.out_channel);
  }
}

/// The taps of one axis that reach the places phase, phase + stride, ... of x: r = first, first +
/// stride, ... The tap r reads output (phase + pad - r) / stride for place `phase`.
struct PhaseAxis {
  Index places, first, pad, kernel, stride, phase;
  [[nodiscard]] Index output(Index r) const { return (phase + pad - r) / stride; }
};

PhaseAxis phase_axis(Index phase, Index extent, Index kernel, Index stride, Index pad) {
  const Index places = phase < extent ? (extent - phase + stride - 1) / stride : 0;
  return {places, (phase + pad) % stride, pad, kernel, stride, phase};
}

/// Fills in offsets and packed weights of a phase and returns the number of its taps.
Index pack_phase(const WindowGeometry& g, const PhaseAxis& vertical, const PhaseAxis& horizontal,
                 const Image& in, const Border& border, const float* w, Index* offsets,
                 float* packed) {
  Index taps = 0;
  for (Index k = 0; k < g.k; ++k) {
    for (Index r = vertical.first; r < g.kernel_h; r += g.stride_h) {
      for (Index s = horizontal.first; s < g.kernel_w; s += g.stride_w) {
        offsets[taps++] = ((k * in.h + border.top + vertical.output(r)) * in.w + border.left +
                           horizontal.output(s)) *
                          kGroup;
      }
    }
  }
  for (Index c = 0; c < g.c; c += kTileOutputs) {
    for (Index k = 0; k < g.k; ++k) {
      for (Index r = vertical.first; r < g.kernel_h; r += g.stride_h) {
        for (Index s = horizontal.first; s < g.kernel_w; s += g.stride_w) {
          for (Index i = 0; i < tile_outputs(g.c, c); ++i) {
            *packed++ = w[((k * g.c + c + i) * g.kernel_h + r) * g.kernel_w + s];
          }
        }
      }
    }
  }
  return taps;
}

void backward_data(const WindowGeometry& g, const float* dy, const float* w, float* dx,
                   void* workspace) {
  const Workspace space = split_workspace(g, workspace);
  const Border border = border_of_dy(g);
  const Image image{g.k, g.p, g.q};
  const Image in = with_border(image, border);
  for (Index group = 0; group < g.groups; ++group) {
    const float* from = bordered(image, border, dy + group * floats_in(image), space.image);
    float* to = dx + group * g.c * g.h * g.w * kGroup;
    for (Index h = 0; h < g.stride_h; ++h) {
      const PhaseAxis vertical = phase_axis(h, g.h, g.kernel_h, g.stride_h, g.pad_top);
      for (Index v = 0; v < g.stride_w; ++v) {
        const PhaseAxis horizontal = phase_axis(v, g.w, g.kernel_w, g.stride_w, g.pad_left);
        const Index taps =
            pack_phase(g, vertical, horizontal, in, border, w, space.offsets, space.weights);
        const TapSum sum{.taps = taps,
                         .outputs = g.c,
                         .rows = vertical.places,
                         .columns = horizontal.places,
                         .offset = space.offsets,
                         .weights = space.weights,
                         .bias = nullptr,
                         .in_row = in.w * kGroup,
                         .in_column = kGroup,
                         .out_channel = g.h * g.w * kGroup,
                         .out_row = g.stride_h * g.w * kGroup,
                         .out_column = g.stride_w * kGroup};
        run(sum, from, to + (h * g.w + v) * kGroup);
      }
    }
  }
}

}  // namespace

const ConvKernels conv_kernels = {
    .forward = forward,
    .backward_data = backward_data,
    .backward_parameters = conv_backward_parameters,
    .workspace_bytes = conv_workspace_bytes,
};

}  // namespace lockstep::cpu::LOCKSTEP_CPU_SET
