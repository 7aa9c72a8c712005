// What the files of the convolution share: images with a border of zeros, tables of taps, and the
// workspace.
#pragma once

#include "lockstep/kernels/cpu/kernels.h"
#include "lockstep/kernels/cpu/simd.h"

namespace lockstep::cpu::LOCKSTEP_CPU_SET {

using Index = std::int64_t;

/// The image of one group: [channels][h][w][16 samples].
struct Image {
  Index channels, h, w;
};

/// Rows and columns of zeros around an image.
struct Border {
  Index top, left, bottom, right;
};

LOCKSTEP_INLINE Index at_least_zero(Index value) {
  return value > 0 ? value : 0;
}

/// What the windows reach beyond x.
LOCKSTEP_INLINE Border border_of_x(const WindowGeometry& g) {
  return {g.pad_top, g.pad_left,
          at_least_zero((g.p - 1) * g.stride_h + g.kernel_h - g.pad_top - g.h),
          at_least_zero((g.q - 1) * g.stride_w + g.kernel_w - g.pad_left - g.w)};
}

/// What the gradient of x reaches beyond dy: the outputs that the kernel would make if it moved on
/// over the edges as long as it touches x. The place h of x takes part in the outputs (h + pad - r)
/// / stride, where that is whole.
LOCKSTEP_INLINE Border border_of_dy(const WindowGeometry& g) {
  return {at_least_zero((g.kernel_h - 1 - g.pad_top) / g.stride_h),
          at_least_zero((g.kernel_w - 1 - g.pad_left) / g.stride_w),
          at_least_zero((g.h - 1 + g.pad_top) / g.stride_h - (g.p - 1)),
          at_least_zero((g.w - 1 + g.pad_left) / g.stride_w - (g.q - 1))};
}

LOCKSTEP_INLINE Image with_border(const Image& image, const Border& b) {
  return {image.channels, image.h + b.top + b.bottom, image.w + b.left + b.right};
}

LOCKSTEP_INLINE Index floats_in(const Image& image) {
  return image.channels * image.h * image.w * kGroup;
}

/// The image at `from` with its border: copied to `space`, or `from` itself where the border is
/// empty.
const float* bordered(const Image& image, const Border& border, const float* from, float* space);

/// Writes where each tap (c,r,s) reads x with its border, relative to the window's first place;
/// returns their number.
Index x_tap_offsets(const WindowGeometry& g, Index* offsets);

/// The parts of the workspace.
struct Workspace {
  Index* offsets;  ///< where each tap reads, relative to the first
  float* weights;  ///< packed for the tiles
  float* image;    ///< one group's x or dy with its border
};

Workspace split_workspace(const WindowGeometry& g, void* workspace);
std::size_t conv_workspace_bytes(const WindowGeometry& g);

void conv_backward_parameters(const WindowGeometry& g, const float* x, const float* dy, float* dw,
                              float* db, bool accumulate, void* workspace);

}  // namespace lockstep::cpu::LOCKSTEP_CPU_SET
