// The sliding window that convolution and pooling share. Letters: N batch, C input channels, H W
// input extents, K output channels, R S kernel extents, P Q output extents.
#pragma once

#include <cstdint>

namespace lockstep {

/// A kernel of (kernel_h, kernel_w) moved by strides over an input with borders. The borders may
/// differ on the two sides, as TensorFlow's SAME needs for even kernels and strides.
struct Window {
  std::int64_t kernel_h = 1, kernel_w = 1;
  std::int64_t stride_h = 1, stride_w = 1;
  std::int64_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;

  /// P = floor((H + pad_top + pad_bottom - R) / stride_h) + 1; 0 or less when the kernel does not
  /// fit.
  [[nodiscard]] std::int64_t output_h(std::int64_t h) const {
    const std::int64_t room = h + pad_top + pad_bottom - kernel_h;
    return room < 0 ? 0 : room / stride_h + 1;
  }
  [[nodiscard]] std::int64_t output_w(std::int64_t w) const {
    const std::int64_t room = w + pad_left + pad_right - kernel_w;
    return room < 0 ? 0 : room / stride_w + 1;
  }

  friend bool operator==(const Window&, const Window&) = default;
};

/// SAME padding: the output is ceil(H / stride) by ceil(W / stride); of an odd border the larger
/// half goes to the bottom and the right (TensorFlow's rule, tensorflow.org/api_docs/python/tf/nn,
/// "notes on padding").
[[nodiscard]] Window same_window(std::int64_t h, std::int64_t w, std::int64_t kernel_h,
                                 std::int64_t kernel_w, std::int64_t stride_h,
                                 std::int64_t stride_w);

}  // namespace lockstep
