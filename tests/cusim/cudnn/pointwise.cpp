// Pooling, activation and addition calls of the simulated libcudnn.
#include "cudnn/convolution.h"
#include "cudnn/handles.h"

namespace cusim {
namespace {

bool pools(const cudnnPoolingStruct& descriptor, const Tensor& x, const Tensor& y) {
  const Pooling& p = descriptor.pooling;
  return x.n() == y.n() && x.c() == y.c() &&
         y.h() == output_extent(x.h(), p.pad_h, p.window_h, p.stride_h) &&
         y.w() == output_extent(x.w(), p.pad_w, p.window_w, p.stride_w);
}

}  // namespace
}  // namespace cusim

using cusim::elements;
using cusim::refuse;

extern "C" {

cudnnStatus_t cudnnGetPooling2dForwardOutputDim(cudnnPoolingDescriptor_t pooling,
                                                cudnnTensorDescriptor_t x, int* n, int* c, int* h,
                                                int* w) {
  if (const cudnnStatus_t status = cusim::pass(__func__)) return status;
  if (!cusim::all_set(pooling, x)) {
    return refuse(CUDNN_STATUS_BAD_PARAM, "pooling shape: a descriptor is not set");
  }
  const cusim::Pooling& p = pooling->pooling;
  const cusim::Tensor& shape = x->tensor;
  *n = static_cast<int>(shape.n());
  *c = static_cast<int>(shape.c());
  *h = static_cast<int>(cusim::output_extent(shape.h(), p.pad_h, p.window_h, p.stride_h));
  *w = static_cast<int>(cusim::output_extent(shape.w(), p.pad_w, p.window_w, p.stride_w));
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnPoolingForward(cudnnHandle_t handle, cudnnPoolingDescriptor_t descriptor,
                                  const void* alpha, cudnnTensorDescriptor_t x_descriptor,
                                  const void* x, const void* beta,
                                  cudnnTensorDescriptor_t y_descriptor, void* y) {
  if (const cudnnStatus_t status = cusim::ready(__func__, handle)) return status;
  if (!alpha || !beta || !cusim::all_set(descriptor, x_descriptor, y_descriptor) ||
      !cusim::pools(*descriptor, x_descriptor->tensor, y_descriptor->tensor)) {
    return refuse(CUDNN_STATUS_BAD_PARAM,
                  "pooling: y has not the shape that x and the window make");
  }
  return cusim::enqueue_call(
      __func__, handle,
      [pooling = descriptor->pooling, blend = cusim::read_blend(alpha, beta),
       x_shape = x_descriptor->tensor, x = static_cast<const float*>(x),
       y_shape = y_descriptor->tensor, y = static_cast<float*>(y), device = handle->device] {
        pooling_forward(pooling, x_shape, elements(x, x_shape, device, "pooling x"), blend, y_shape,
                        elements(y, y_shape, device, "pooling y"));
      });
}

cudnnStatus_t cudnnPoolingBackward(cudnnHandle_t handle, cudnnPoolingDescriptor_t descriptor,
                                   const void* alpha, cudnnTensorDescriptor_t y_descriptor,
                                   const void* y, cudnnTensorDescriptor_t dy_descriptor,
                                   const void* dy, cudnnTensorDescriptor_t x_descriptor,
                                   const void* x, const void* beta,
                                   cudnnTensorDescriptor_t dx_descriptor, void* dx) {
  if (const cudnnStatus_t status = cusim::ready(__func__, handle)) return status;
  if (!alpha || !beta ||
      !cusim::all_set(descriptor, y_descriptor, dy_descriptor, x_descriptor, dx_descriptor) ||
      !cusim::pools(*descriptor, x_descriptor->tensor, y_descriptor->tensor) ||
      !dy_descriptor->tensor.same_extents(y_descriptor->tensor) ||
      !dx_descriptor->tensor.same_extents(x_descriptor->tensor)) {
    return refuse(CUDNN_STATUS_BAD_PARAM, "pooling gradient: shapes do not fit together");
  }
  return cusim::enqueue_call(
      __func__, handle,
      [pooling = descriptor->pooling, blend = cusim::read_blend(alpha, beta),
       any_order = !descriptor->deterministic, y_shape = y_descriptor->tensor,
       y = static_cast<const float*>(y), dy_shape = dy_descriptor->tensor,
       dy = static_cast<const float*>(dy), x_shape = x_descriptor->tensor,
       x = static_cast<const float*>(x), dx_shape = dx_descriptor->tensor,
       dx = static_cast<float*>(dx), device = handle->device] {
        pooling_backward(pooling, y_shape, elements(y, y_shape, device, "pooling y"), dy_shape,
                         elements(dy, dy_shape, device, "pooling dy"), x_shape,
                         elements(x, x_shape, device, "pooling x"), blend, any_order, dx_shape,
                         elements(dx, dx_shape, device, "pooling dx"));
      });
}

cudnnStatus_t cudnnActivationForward(cudnnHandle_t handle, cudnnActivationDescriptor_t descriptor,
                                     const void* alpha, cudnnTensorDescriptor_t x_descriptor,
                                     const void* x, const void* beta,
                                     cudnnTensorDescriptor_t y_descriptor, void* y) {
  if (const cudnnStatus_t status = cusim::ready(__func__, handle)) return status;
  if (!alpha || !beta || !cusim::all_set(descriptor, x_descriptor, y_descriptor) ||
      !x_descriptor->tensor.same_extents(y_descriptor->tensor)) {
    return refuse(CUDNN_STATUS_BAD_PARAM, "activation: x and y must have one shape");
  }
  return cusim::enqueue_call(
      __func__, handle,
      [activation = *descriptor, blend = cusim::read_blend(alpha, beta),
       x_shape = x_descriptor->tensor, x = static_cast<const float*>(x),
       y_shape = y_descriptor->tensor, y = static_cast<float*>(y), device = handle->device] {
        activation_forward(activation.activation, activation.propagate_nan, x_shape,
                           elements(x, x_shape, device, "activation x"), blend, y_shape,
                           elements(y, y_shape, device, "activation y"));
      });
}

cudnnStatus_t cudnnActivationBackward(cudnnHandle_t handle, cudnnActivationDescriptor_t descriptor,
                                      const void* alpha, cudnnTensorDescriptor_t y_descriptor,
                                      const void* y, cudnnTensorDescriptor_t dy_descriptor,
                                      const void* dy, cudnnTensorDescriptor_t x_descriptor,
                                      const void* x, const void* beta,
                                      cudnnTensorDescriptor_t dx_descriptor, void* dx) {
  if (const cudnnStatus_t status = cusim::ready(__func__, handle)) return status;
  if (!alpha || !beta ||
      !cusim::all_set(descriptor, y_descriptor, dy_descriptor, x_descriptor, dx_descriptor) ||
      !y_descriptor->tensor.same_extents(x_descriptor->tensor) ||
      !dy_descriptor->tensor.same_extents(x_descriptor->tensor) ||
      !dx_descriptor->tensor.same_extents(x_descriptor->tensor)) {
    return refuse(CUDNN_STATUS_BAD_PARAM, "activation gradient: all must have one shape");
  }
  return cusim::enqueue_call(
      __func__, handle,
      [activation = descriptor->activation, blend = cusim::read_blend(alpha, beta),
       y_shape = y_descriptor->tensor, y = static_cast<const float*>(y),
       dy_shape = dy_descriptor->tensor, dy = static_cast<const float*>(dy),
       x_shape = x_descriptor->tensor, x = static_cast<const float*>(x),
       dx_shape = dx_descriptor->tensor, dx = static_cast<float*>(dx), device = handle->device] {
        activation_backward(activation, y_shape, elements(y, y_shape, device, "activation y"),
                            dy_shape, elements(dy, dy_shape, device, "activation dy"), x_shape,
                            elements(x, x_shape, device, "activation x"), blend, dx_shape,
                            elements(dx, dx_shape, device, "activation dx"));
      });
}

cudnnStatus_t cudnnAddTensor(cudnnHandle_t handle, const void* alpha,
                             cudnnTensorDescriptor_t a_descriptor, const void* A, const void* beta,
                             cudnnTensorDescriptor_t c_descriptor, void* C) {
  if (const cudnnStatus_t status = cusim::ready(__func__, handle)) return status;
  bool fits = alpha && beta && cusim::all_set(a_descriptor, c_descriptor);
  for (std::size_t axis = 0; fits && axis < 4; ++axis) {
    const cusim::Index extent = a_descriptor->tensor.extents[axis];
    fits = extent == 1 || extent == c_descriptor->tensor.extents[axis];
  }
  if (!fits) {
    return refuse(CUDNN_STATUS_BAD_PARAM, "addition: extents of a must be 1 or those of c");
  }
  return cusim::enqueue_call(
      __func__, handle,
      [blend = cusim::read_blend(alpha, beta), a_shape = a_descriptor->tensor,
       a = static_cast<const float*>(A), c_shape = c_descriptor->tensor, c = static_cast<float*>(C),
       device = handle->device] {
        add_tensor(a_shape, elements(a, a_shape, device, "addition a"), blend, c_shape,
                   elements(c, c_shape, device, "addition c"));
      });
}

}  // extern "C"
