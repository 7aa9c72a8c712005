#include "lockstep/kernels/window.h"

#include <algorithm>

namespace lockstep {
namespace {

/// Border along one axis: what the last window of ceil(extent / stride) reaches beyond the input.
std::int64_t same_border(std::int64_t extent, std::int64_t kernel, std::int64_t stride) {
  const std::int64_t outputs = (extent + stride - 1) / stride;
  return std::max<std::int64_t>((outputs - 1) * stride + kernel - extent, 0);
}

}  // namespace

Window same_window(std::int64_t h, std::int64_t w, std::int64_t kernel_h, std::int64_t kernel_w,
                   std::int64_t stride_h, std::int64_t stride_w) {
  const std::int64_t border_h = same_border(h, kernel_h, stride_h);
  const std::int64_t border_w = same_border(w, kernel_w, stride_w);
  return {.kernel_h = kernel_h,
          .kernel_w = kernel_w,
          .stride_h = stride_h,
          .stride_w = stride_w,
          .pad_top = border_h / 2,
          .pad_left = border_w / 2,
          .pad_bottom = border_h - border_h / 2,
          .pad_right = border_w - border_w / 2};
}

}  // namespace lockstep
