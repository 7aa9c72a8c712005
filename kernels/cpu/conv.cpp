// Convolution on groups of 16 samples: output and data gradient, both by the sum of conv_tile.h.
//
// Forward, taps are (c,r,s) over x. The data gradient is the same sum over dy with the taps
// (k,r,s): place h of x takes part in output (h + pad - r) / stride where that is whole, so with
// strides dx falls into stride_h * stride_w interleaved images ("phases"), each with its own taps
// r, s.
#include "lockstep/kernels/cpu/conv_tile.h"
#include "lockstep/kernels/cpu/set.h"

namespace lockstep::cpu::LOCKSTEP_CPU_SET {
namespace {

void forward(const WindowGeometry& g, const float* x, const float* w, const float* b, float* y,
             void* workspace) {
  const Workspace space = split_workspace(g, workspace);
  const Border border = border_of_x(g);
  const Image in = rows_of_channels(g.c, g.h, g.w, border);
  TapSum sum = forward_sum(g, in, w, b, 1, space);
  sum.out_channel = g.p * g.q * kGroup;
  sum.out_column = kGroup;
  for (Index group = 0; group < g.groups; ++group) {
    const float* from = x + group * g.c * g.h * g.w * kGroup;
    float* to = y + group * g.k * sum.out_channel;
    add_border_to_parts(in, border, from, space.image);
    for (Index row = 0; row < g.p; ++row) {
      for (int part = 0; part < kParts; ++part) {
        sum_rows(sum, 1, space.image + part * in.h * in.row + row * sum.in_row,
                 to + row * g.q * kGroup + part * kLanes);
      }
    }
  }
}

/// The taps of one axis that reach the places phase, phase + stride, ... of x: r = first, first +
/// stride, ... The tap r reads output (phase + pad - r) / stride for place `phase`.
struct PhaseAxis {
  Index places, first, pad, stride, phase;
  [[nodiscard]] Index output(Index r) const { return (phase + pad - r) / stride; }
};

PhaseAxis phase_axis(Index phase, Index extent, Index stride, Index pad) {
  const Index places = phase < extent ? (extent - phase + stride - 1) / stride : 0;
  return {places, (phase + pad) % stride, pad, stride, phase};
}

/// Fills in offsets and packed weights of a phase and returns the number of its taps.
Index pack_phase(const WindowGeometry& g, const PhaseAxis& vertical, const PhaseAxis& horizontal,
                 const Image& in, const Border& border, const float* w, Index* offsets,
                 float* packed) {
  Index taps = 0;
  for (Index k = 0; k < g.k; ++k) {
    for (Index r = vertical.first; r < g.kernel_h; r += g.stride_h) {
      for (Index s = horizontal.first; s < g.kernel_w; s += g.stride_w) {
        offsets[taps++] = k * in.channel + (border.top + vertical.output(r)) * in.row +
                          (border.left + horizontal.output(s)) * in.place;
      }
    }
  }
  for (Index c = 0, outputs = 0; c < g.c; c += outputs) {
    outputs = tile_outputs(g.c, c);
    for (Index k = 0; k < g.k; ++k) {
      for (Index r = vertical.first; r < g.kernel_h; r += g.stride_h) {
        for (Index s = horizontal.first; s < g.kernel_w; s += g.stride_w) {
          for (Index i = 0; i < outputs; ++i) {
            *packed++ = w[((k * g.c + c + i) * g.kernel_h + r) * g.kernel_w + s];
          }
        }
      }
    }
  }
  return taps;
}

/// The places of a phase that no output touches.
void clear(const TapSum& sum, Index rows, float* out) {
  for (Index i = 0; i < sum.outputs; ++i) {
    for (Index row = 0; row < rows; ++row) {
      float* to = out + i * sum.out_channel + row * sum.out_row;
      for (Index column = 0; column < sum.columns; ++column)
        __builtin_memset(to + column * sum.out_column, 0, sizeof(float) * kGroup);
    }
  }
}

/// dx of one group; `image` is dy with its border.
void data_phases(const WindowGeometry& g, const Image& in, const Border& border, const float* image,
                 const float* w, float* dx, const Workspace& space) {
  for (Index h = 0; h < g.stride_h; ++h) {
    const PhaseAxis vertical = phase_axis(h, g.h, g.stride_h, g.pad_top);
    for (Index v = 0; v < g.stride_w; ++v) {
      const PhaseAxis horizontal = phase_axis(v, g.w, g.stride_w, g.pad_left);
      const Index taps =
          pack_phase(g, vertical, horizontal, in, border, w, space.offsets, space.weights);
      const TapSum sum{.taps = taps,
                       .outputs = g.c,
                       .columns = horizontal.places,
                       .taps_at_once = cached_taps(g.kernel_h, in.w, larger(1, taps / g.k)),
                       .offset = space.offsets,
                       .weights = space.weights,
                       .bias = nullptr,
                       .in_row = in.row,
                       .in_column = kLanes,
                       .out_channel = g.h * g.w * kGroup,
                       .out_row = g.stride_h * g.w * kGroup,
                       .out_column = g.stride_w * kGroup};
      float* to = dx + (h * g.w + v) * kGroup;
      if (taps == 0) {
        clear(sum, vertical.places, to);
        continue;
      }
      for (Index row = 0; row < vertical.places; ++row) {
        for (int part = 0; part < kParts; ++part) {
          sum_rows(sum, 1, image + part * in.h * in.row + row * sum.in_row,
                   to + row * sum.out_row + part * kLanes);
        }
      }
    }
  }
}

void backward_data(const WindowGeometry& g, const float* dy, const float* w, float* dx,
                   void* workspace) {
  const Workspace space = split_workspace(g, workspace);
  const Border border = border_of_dy(g);
  const Image in = rows_of_channels(g.k, g.p, g.q, border);
  for (Index group = 0; group < g.groups; ++group) {
    add_border_to_parts(in, border, dy + group * g.k * g.p * g.q * kGroup, space.image);
    data_phases(g, in, border, space.image, w, dx + group * g.c * g.h * g.w * kGroup, space);
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
