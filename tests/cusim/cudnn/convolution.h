// Arithmetic of the simulated convolutions: plain functions on host memory.
//
// All three are matrix products over the columns of an image: columns(tap, place) is the element of
// x that filter tap (c, r, s) meets at output place (oh, ow), 0 outside of the image.
#pragma once

#include "cublas/gemm.h"
#include "cudnn/tensor.h"

namespace cusim {

/// A convolution of x (n, c, h, w) by filters (k, c, r, s), packed, to y (n, k, oh, ow).
struct Convolution {
  Tensor x, y;
  Index r = 1, s = 1;
  Index pad_h = 0, pad_w = 0;
  Index stride_h = 1, stride_w = 1;
  Index dilation_h = 1, dilation_w = 1;
  bool flipped = false;  ///< convolution in the mathematical sense; else cross-correlation
  Precision precision = Precision::kFloat;

  [[nodiscard]] Index taps() const { return x.c() * r * s; }
  [[nodiscard]] Index places() const { return y.h() * y.w(); }
};

/// Outputs along an axis of `extent` elements; below 1 when the window does not fit.
[[nodiscard]] Index output_extent(Index extent, Index pad, Index window, Index stride,
                                  Index dilation = 1);

/// y = alpha * conv(x, w) + beta * y.
void convolution_forward(const Convolution& conv, const float* x, const float* w, Blend blend,
                         float* y);

/// dx = alpha * (gradient of x) + beta * dx. `any_order` adds the taps in a random order.
void convolution_backward_data(const Convolution& conv, const float* w, const float* dy,
                               Blend blend, bool any_order, float* dx);

/// dw = alpha * (gradient of w) + beta * dw. `any_order` adds the images in a random order.
void convolution_backward_filter(const Convolution& conv, const float* x, const float* dy,
                                 Blend blend, bool any_order, float* dw);

/// db(c) = alpha * (sum of dy over n, h, w) + beta * db(c).
void convolution_backward_bias(const Tensor& dy_shape, const float* dy, Blend blend, float* db);

}  // namespace cusim
