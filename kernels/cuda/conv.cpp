// Convolution: the products of cuDNN, or of our own plain kernels in a build without it; the bias
// is always ours (cuDNN's bias gradient is slow and its order is not promised).
#include "lockstep/config.h"
#include "lockstep/kernels/cuda/bias.h"
#include "lockstep/kernels/cuda/conv_products.h"
#include "lockstep/kernels/cuda/kernels.h"

namespace lockstep::cuda {
namespace {

/// y (N,K,P,Q) as the bias sees it.
BiasShape bias_shape(const Shape& y) {
  return {y[0], y[1], y[2] * y[3]};
}

}  // namespace

void conv2d_forward(Context& context, const Window& window, ConstFloatView x, ConstFloatView w,
                    ConstFloatView b, FloatView y) {
  if constexpr (kHasCudnn) {
    cudnn::conv_forward(context, window, x, w, y);
  } else {
    plain::conv_forward(context, window, x, w, y);
  }
  if (b.data != nullptr) add_bias(context, bias_shape(y.shape), b.data, y.data);
}

void conv2d_backward_data(Context& context, const Window& window, ConstFloatView dy,
                          ConstFloatView w, FloatView dx) {
  if constexpr (kHasCudnn) {
    cudnn::conv_backward_data(context, window, dy, w, dx);
  } else {
    plain::conv_backward_data(context, window, dy, w, dx);
  }
}

void conv2d_backward_parameters(Context& context, const Window& window, ConstFloatView x,
                                ConstFloatView dy, FloatView dw, FloatView db, bool accumulate) {
  if constexpr (kHasCudnn) {
    cudnn::conv_backward_weights(context, window, x, dy, dw, accumulate);
  } else {
    plain::conv_backward_weights(context, window, x, dy, dw, accumulate);
  }
  if (db.data != nullptr) {
    sum_bias_gradient(context, bias_shape(dy.shape), dy.data, db.data, accumulate);
  }
}

std::size_t conv2d_workspace_bytes(Context& context, const Window& window, const Shape& x,
                                   const Shape& w) {
  if constexpr (kHasCudnn) {
    return cudnn::conv_workspace_bytes(context, window, x, w);
  } else {
    return 0;
  }
}

}  // namespace lockstep::cuda
