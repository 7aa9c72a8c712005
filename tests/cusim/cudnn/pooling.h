// Arithmetic of the simulated poolings: plain functions on host memory.
#pragma once

#include "cudnn/tensor.h"

namespace cusim {

enum class PoolingMode { kMax, kAverageIncludePadding, kAverageExcludePadding };

struct Pooling {
  PoolingMode mode = PoolingMode::kMax;
  bool propagate_nan = false;  ///< a maximum over a window with a NaN is NaN; else NaN is left out
  Index window_h = 1, window_w = 1;
  Index pad_h = 0, pad_w = 0;
  Index stride_h = 1, stride_w = 1;
};

/// y = alpha * pool(x) + beta * y.
void pooling_forward(const Pooling& pooling, const Tensor& x_shape, const float* x, Blend blend,
                     const Tensor& y_shape, float* y);

/// dx = alpha * (gradient of x) + beta * dx. The gradient of a maximum goes to the first element of
/// the window that equals y. `any_order` adds the windows in a random order.
void pooling_backward(const Pooling& pooling, const Tensor& y_shape, const float* y,
                      const Tensor& dy_shape, const float* dy, const Tensor& x_shape,
                      const float* x, Blend blend, bool any_order, const Tensor& dx_shape,
                      float* dx);

}  // namespace cusim
