// Convolution on groups of 16 samples: output and data gradient, both by the sum of conv_sum.h.
//
// Forward, taps are (c,r,s) over x. The data gradient is the same sum over dy with the taps
// (k,r,s): place h of x takes part in output (h + pad - r) / stride where that is whole, so with
// strides dx falls into stride_h * stride_w interleaved images ("phases"), each with its own taps
// r, s.
#include "lockstep/kernels/cpu/conv_parameters.h"
#include "lockstep/kernels/cpu/conv_sum.h"
#include "lockstep/kernels/cpu/set.h"

namespace lockstep::cpu::LOCKSTEP_CPU_SET {
namespace {

/// Where the kernel is one place and meets all places of the image: the same in longer rows, which
/// are begun less often, as long as the `channels` that are read stay in a part of the first-level
/// cache.
WindowGeometry in_long_rows(WindowGeometry g, Index channels) {
  const bool one_place = g.kernel_h * g.kernel_w * g.stride_h * g.stride_w == 1;
  if (!one_place || g.p != g.h || g.q != g.w) return g;
  constexpr Index kNearFloats = 16 * 1024 / 4;
  Index rows = g.h;
  while (rows > 1 && (g.h % rows > 0 || rows * channels * g.w * kGroup > kNearFloats)) --rows;
  g.h /= rows;
  g.p /= rows;
  g.w *= rows;
  g.q *= rows;
  return g;
}

void forward(const WindowGeometry& geometry, const float* x, const float* w, const float* b,
             float* y, void* workspace) {
  const WindowGeometry g = in_long_rows(geometry, geometry.c);
  const TapSum sum = forward_sum(g, w, b, 1, workspace);
  for (Index group = 0; group < g.groups; ++group) {
    sum_group(sum, x + group * g.c * g.h * g.w * kGroup, y + group * g.k * g.p * g.q * kGroup);
  }
}

/// The places phase, phase + stride, ... of x along one axis: they take part in outputs by the
/// kernel's places first, first + stride, ..., of which tap i reads output place + (phase + pad -
/// first) / stride - i.
struct Phase {
  Axis axis;
  Index first;
};

Phase phase_of(Index phase, Index extent, Index kernel, Index stride, Index pad, Index outputs) {
  const auto count_from = [stride](Index first, Index end) {
    return first < end ? (end - first + stride - 1) / stride : 0;
  };
  const Index first = (phase + pad) % stride;
  return {with_inner_places({.places = count_from(phase, extent),
                             .taps = count_from(first, kernel),
                             .step = 1,
                             .start = (phase + pad - first) / stride,
                             .direction = -1,
                             .extent = outputs,
                             .inner_first = 0,
                             .inner_end = 0}),
          first};
}

/// One phase of all groups' dx.
void phase_of_data(const WindowGeometry& g, const Phase& vertical, const Phase& horizontal,
                   const float* dy, const float* w, float* dx, void* workspace) {
  const Index in_row = g.q * kGroup;
  const Index in_channel = g.p * in_row;
  TapSum sum{.vertical = vertical.axis,
             .horizontal = horizontal.axis,
             .channels = g.k,
             .outputs = g.c,
             .channels_at_once =
                 smaller(g.k, channels_at_once(g.c, vertical.axis.taps, in_row, in_channel)),
             .in_channel = in_channel,
             .in_row = in_row,
             .out_channel = g.h * g.w * kGroup,
             .out_row = g.stride_h * g.w * kGroup,
             .out_column = g.stride_w * kGroup,
             .offset = nullptr,
             .weights = nullptr,
             .bias = nullptr};
  const Index taps = g.kernel_h * g.kernel_w;
  pack(sum,
       {w + vertical.first * g.kernel_w + horizontal.first, taps, g.c * taps,
        g.stride_h * g.kernel_w, g.stride_w},
       workspace);
  for (Index group = 0; group < g.groups; ++group) {
    sum_group(sum, dy + group * g.k * in_channel, dx + group * g.c * sum.out_channel);
  }
}

void backward_data(const WindowGeometry& geometry, const float* dy, const float* w, float* dx,
                   void* workspace) {
  const WindowGeometry g = in_long_rows(geometry, geometry.k);
  for (Index h = 0; h < g.stride_h; ++h) {
    const Phase vertical = phase_of(h, g.h, g.kernel_h, g.stride_h, g.pad_top, g.p);
    for (Index v = 0; v < g.stride_w; ++v) {
      const Phase horizontal = phase_of(v, g.w, g.kernel_w, g.stride_w, g.pad_left, g.q);
      phase_of_data(g, vertical, horizontal, dy, w, dx + (h * g.w + v) * kGroup, workspace);
    }
  }
}

std::size_t workspace_bytes(const WindowGeometry& g) {
  const std::size_t sum = tap_sum_bytes(g);
  const std::size_t parameters = conv_backward_parameters_bytes(g);
  return sum > parameters ? sum : parameters;
}

}  // namespace

const ConvKernels conv_kernels = {
    .forward = forward,
    .backward_data = backward_data,
    .backward_parameters = conv_backward_parameters,
    .workspace_bytes = workspace_bytes,
};

}  // namespace lockstep::cpu::LOCKSTEP_CPU_SET
