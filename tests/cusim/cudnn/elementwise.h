// Arithmetic of the simulated activations and of adding tensors: plain functions on host memory.
#pragma once

#include "cudnn/tensor.h"

namespace cusim {

enum class Activation { kIdentity, kRelu, kSigmoid, kTanh };

/// relu(NaN) is NaN with `propagate_nan`, else 0.
[[nodiscard]] float activate(Activation activation, bool propagate_nan, float x);

/// y = alpha * activation(x) + beta * y. x may be y.
void activation_forward(Activation activation, bool propagate_nan, const Tensor& x_shape,
                        const float* x, Blend blend, const Tensor& y_shape, float* y);

/// dx = alpha * (gradient of x) + beta * dx. dx may be dy.
void activation_backward(Activation activation, const Tensor& y_shape, const float* y,
                         const Tensor& dy_shape, const float* dy, const Tensor& x_shape,
                         const float* x, Blend blend, const Tensor& dx_shape, float* dx);

/// c = alpha * a + beta * c, where extents of 1 in `a` are repeated.
void add_tensor(const Tensor& a_shape, const float* a, Blend blend, const Tensor& c_shape,
                float* c);

}  // namespace cusim
