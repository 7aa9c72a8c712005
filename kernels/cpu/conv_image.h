// Images with a border of zeros, for kernels that take in whole patches.
#pragma once

#include "lockstep/kernels/cpu/kernels.h"
#include "lockstep/kernels/cpu/numbers.h"

namespace lockstep::cpu::LOCKSTEP_CPU_SET {

/// x of one vector of samples with what the windows reach beyond it: a vector a place, row by row,
/// each with all channels. So the rows that a row of outputs needs lie in one piece and meet in the
/// cache whatever the extents are. Distances are in floats.
struct BorderedImage {
  Index top, left;  ///< rows and columns of zeros before x
  Index h, w;       ///< extents with both borders
  Index row, channel;

  [[nodiscard]] Index floats() const { return h * row; }
};

/// Extent of an image along one axis with what the windows reach beyond it.
LOCKSTEP_INLINE Index reach(Index pad, Index extent, Index outputs, Index stride, Index kernel) {
  return larger(pad + extent, (outputs - 1) * stride + kernel);
}

LOCKSTEP_INLINE BorderedImage bordered(const WindowGeometry& g) {
  const Index w = reach(g.pad_left, g.w, g.q, g.stride_w, g.kernel_w);
  return {.top = g.pad_top,
          .left = g.pad_left,
          .h = reach(g.pad_top, g.h, g.p, g.stride_h, g.kernel_h),
          .w = w,
          .row = g.c * w * kLanes,
          .channel = w * kLanes};
}

/// Copies one group of x, all its vectors of samples one behind the other.
void add_border(const WindowGeometry& g, const BorderedImage& image, const float* x, float* to);

}  // namespace lockstep::cpu::LOCKSTEP_CPU_SET
