// What the files of the convolution share: images with a border of zeros, tables of taps, and the
// workspace.
#pragma once

#include "lockstep/kernels/cpu/kernels.h"
#include "lockstep/kernels/cpu/numbers.h"

namespace lockstep::cpu::LOCKSTEP_CPU_SET {

/// What of the first-level cache a kernel plans with: three quarters of the 32 KiB that x86 cores
/// have at least since AVX2.
constexpr Index kCacheFloats = Index{24} * 1024 / 4;

/// Rows and columns of zeros around an image.
struct Border {
  Index top, left, bottom, right;
};

/// An image with its border: `channels` of h x w places, each of some samples of a group, and how
/// far apart places, rows and channels are in memory, in floats.
struct Image {
  Index channels, h, w;
  Index place, row, channel;
};

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

/// A vector of samples a place; row by row, each with all channels: the rows that a row of outputs
/// needs lie in one piece, so they meet in the cache whatever the extents are.
LOCKSTEP_INLINE Image rows_of_channels(Index channels, Index h, Index w, const Border& b) {
  const Index row = (w + b.left + b.right) * kLanes;
  return {channels, h + b.top + b.bottom, w + b.left + b.right, kLanes, channels * row, row};
}

/// The whole group a place, channel by channel.
LOCKSTEP_INLINE Image channels_of_rows(Index channels, Index h, Index w, const Border& b) {
  const Index row = (w + b.left + b.right) * kGroup;
  const Index rows = h + b.top + b.bottom;
  return {channels, rows, w + b.left + b.right, kGroup, row, rows * row};
}

/// Copies one group's image `from` (contiguous, channels of rows; of a vector of samples its first)
/// to `to` with its border of zeros.
void add_border(const Image& image, const Border& border, const float* from, float* to);

/// All vectors of samples of one group, each in an image of rows_of_channels, one behind the other.
LOCKSTEP_INLINE void add_border_to_parts(const Image& image, const Border& border,
                                         const float* from, float* to) {
  for (int part = 0; part < kParts; ++part) {
    add_border(image, border, from + part * kLanes, to + part * image.h * image.row);
  }
}

/// Writes where each tap (c,r,s) reads x with its border, relative to the window's first place;
/// returns their number.
Index x_tap_offsets(const WindowGeometry& g, const Image& image, Index* offsets);

/// The parts of the workspace.
struct Workspace {
  Index* offsets;  ///< where each tap reads, relative to the first
  float* weights;  ///< packed for the tiles; or a vector of sums for each weight
  float* bias;     ///< a vector for each output
  float* image;    ///< one group's x or dy with its border
};

Workspace split_workspace(const WindowGeometry& g, void* workspace);
std::size_t conv_workspace_bytes(const WindowGeometry& g);

void conv_backward_parameters(const WindowGeometry& g, const float* x, const float* dy, float* dw,
                              float* db, bool accumulate, void* workspace);

}  // namespace lockstep::cpu::LOCKSTEP_CPU_SET
