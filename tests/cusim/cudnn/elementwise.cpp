#include "cudnn/elementwise.h"

#include <cmath>

namespace cusim {

float activate(Activation activation, bool propagate_nan, float x) {
  switch (activation) {
    case Activation::kIdentity:
      return x;
    case Activation::kRelu:
      return x > 0 || (propagate_nan && std::isnan(x)) ? x : 0.0F;
    case Activation::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case Activation::kTanh:
      return std::tanh(x);
  }
  return x;
}

void activation_forward(Activation activation, bool propagate_nan, const Tensor& x_shape,
                        const float* x, Blend blend, const Tensor& y_shape, float* y) {
  for_each_place(y_shape, [&](Index n, Index c, Index h, Index w) {
    const float result = activate(activation, propagate_nan, x[x_shape.offset(n, c, h, w)]);
    blend(result, y[y_shape.offset(n, c, h, w)]);
  });
}

void activation_backward(Activation activation, const Tensor& y_shape, const float* y,
                         const Tensor& dy_shape, const float* dy, const Tensor& x_shape,
                         const float* x, Blend blend, const Tensor& dx_shape, float* dx) {
  for_each_place(dx_shape, [&](Index n, Index c, Index h, Index w) {
    const float value = y[y_shape.offset(n, c, h, w)];
    float slope = 1;
    if (activation == Activation::kRelu) slope = x[x_shape.offset(n, c, h, w)] > 0 ? 1.0F : 0.0F;
    if (activation == Activation::kSigmoid) slope = value * (1 - value);
    if (activation == Activation::kTanh) slope = 1 - value * value;
    blend(slope * dy[dy_shape.offset(n, c, h, w)], dx[dx_shape.offset(n, c, h, w)]);
  });
}

void add_tensor(const Tensor& a_shape, const float* a, Blend blend, const Tensor& c_shape,
                float* c) {
  const auto place = [&](std::size_t axis, Index index) {
    return a_shape.extents[axis] == 1 ? 0 : index;
  };
  for_each_place(c_shape, [&](Index in, Index ic, Index ih, Index iw) {
    const float value = a[a_shape.offset(place(0, in), place(1, ic), place(2, ih), place(3, iw))];
    blend(value, c[c_shape.offset(in, ic, ih, iw)]);
  });
}

}  // namespace cusim
