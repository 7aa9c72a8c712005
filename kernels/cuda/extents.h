// Extents as the GPU's libraries and kernels count them: in int. Internal.
#pragma once

#include <cstdint>

#include "lockstep/core/error.h"
#include "lockstep/core/tensor.h"
#include "lockstep/kernels/window.h"

namespace lockstep::cuda {

/// Throws ShapeError for an extent above 2^30: below it, an index may go a step beyond the end
/// without overflow.
[[nodiscard]] inline int int_extent(std::int64_t extent) {
  constexpr std::int64_t kMost = 1 << 30;
  if (extent > kMost) {
    throw ShapeError(message("an extent of ", extent, " is more than kernels for GPUs count (",
                             kMost, "); use a smaller batch or smaller images"));
  }
  return static_cast<int>(extent);
}

/// A window that slides over n * c images of h x w and makes n * k of p x q; pooling: k == c.
struct WindowExtents {
  int n, c, h, w;
  int k, p, q;
  int kernel_h, kernel_w, stride_h, stride_w, pad_top, pad_left;
};

/// x is (N,C,H,W), y (N,K,P,Q).
[[nodiscard]] inline WindowExtents window_extents(const Window& window, const Shape& x,
                                                  const Shape& y) {
  static_cast<void>(int_extent(x[2] * x[3]));  // places of an image are counted too
  static_cast<void>(int_extent(y[2] * y[3]));
  return {.n = int_extent(x[0]),
          .c = int_extent(x[1]),
          .h = int_extent(x[2]),
          .w = int_extent(x[3]),
          .k = int_extent(y[1]),
          .p = int_extent(y[2]),
          .q = int_extent(y[3]),
          .kernel_h = int_extent(window.kernel_h),
          .kernel_w = int_extent(window.kernel_w),
          .stride_h = int_extent(window.stride_h),
          .stride_w = int_extent(window.stride_w),
          .pad_top = int_extent(window.pad_top),
          .pad_left = int_extent(window.pad_left)};
}

}  // namespace lockstep::cuda
