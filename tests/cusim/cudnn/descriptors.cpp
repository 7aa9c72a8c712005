// Descriptors of the simulated libcudnn.
#include <memory>
#include <string>

#include "cudnn/handles.h"

namespace cusim {
namespace {

template <class Descriptor>
cudnnStatus_t create(const char* call, Descriptor** descriptor) {
  if (const cudnnStatus_t status = pass(call)) return status;
  if (!descriptor) return refuse(CUDNN_STATUS_BAD_PARAM, "create: no place for the descriptor");
  *descriptor = std::make_unique<Descriptor>().release();
  live_descriptors().add(*descriptor);
  return CUDNN_STATUS_SUCCESS;
}

template <class Descriptor>
cudnnStatus_t destroy(const char* call, Descriptor* descriptor) {
  const cudnnStatus_t status = pass(call);
  if (!live_descriptors().remove(descriptor)) {
    return refuse(CUDNN_STATUS_BAD_PARAM, std::string(call) + ": no such descriptor");
  }
  delete descriptor;
  return status;
}

/// Success, or why `call` cannot change this descriptor.
cudnnStatus_t admit(const char* call, const void* descriptor) {
  if (const cudnnStatus_t status = pass(call)) return status;
  if (is_live(descriptor)) return CUDNN_STATUS_SUCCESS;
  return refuse(CUDNN_STATUS_BAD_PARAM, std::string(call) + ": no such descriptor");
}

cudnnStatus_t set_tensor(const char* call, cudnnTensorDescriptor_t descriptor, cudnnDataType_t type,
                         const Tensor& tensor) {
  if (const cudnnStatus_t status = admit(call, descriptor)) return status;
  if (type != CUDNN_DATA_FLOAT) return refuse(CUDNN_STATUS_NOT_SUPPORTED, "tensor: floats only");
  for (std::size_t axis = 0; axis < 4; ++axis) {
    if (tensor.extents[axis] < 1 || tensor.steps[axis] < 1) {
      return refuse(CUDNN_STATUS_BAD_PARAM, "tensor: extents and strides must be positive");
    }
  }
  *descriptor = {true, tensor};
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace
}  // namespace cusim

using cusim::Index;
using cusim::refuse;

extern "C" {

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* descriptor) {
  return cusim::create(__func__, descriptor);
}

cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t descriptor) {
  return cusim::destroy(__func__, descriptor);
}

cudnnStatus_t cudnnSetTensor4dDescriptorEx(cudnnTensorDescriptor_t descriptor, cudnnDataType_t type,
                                           int n, int c, int h, int w, int n_stride, int c_stride,
                                           int h_stride, int w_stride) {
  return cusim::set_tensor(__func__, descriptor, type,
                           {{n, c, h, w}, {n_stride, c_stride, h_stride, w_stride}});
}

cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t descriptor,
                                         cudnnTensorFormat_t format, cudnnDataType_t type, int n,
                                         int c, int h, int w) {
  if (format == CUDNN_TENSOR_NCHW) {
    return cusim::set_tensor(__func__, descriptor, type, cusim::packed_tensor(n, c, h, w));
  }
  if (format == CUDNN_TENSOR_NHWC) {
    const Index row = Index{w} * c;
    return cusim::set_tensor(__func__, descriptor, type, {{n, c, h, w}, {h * row, 1, row, c}});
  }
  return refuse(CUDNN_STATUS_NOT_SUPPORTED, "tensor: NCHW or NHWC only");
}

cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* descriptor) {
  return cusim::create(__func__, descriptor);
}

cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t descriptor) {
  return cusim::destroy(__func__, descriptor);
}

cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t descriptor, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int k, int c, int h, int w) {
  if (const cudnnStatus_t status = cusim::admit(__func__, descriptor)) return status;
  if (k < 1 || c < 1 || h < 1 || w < 1) {
    return refuse(CUDNN_STATUS_BAD_PARAM, "filter: extents must be positive");
  }
  if (type != CUDNN_DATA_FLOAT || format != CUDNN_TENSOR_NCHW) {
    return refuse(CUDNN_STATUS_NOT_SUPPORTED, "filter: floats in the order k, c, r, s only");
  }
  *descriptor = {true, k, c, h, w};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* descriptor) {
  return cusim::create(__func__, descriptor);
}

cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t descriptor) {
  return cusim::destroy(__func__, descriptor);
}

cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t descriptor, int pad_h,
                                              int pad_w, int stride_h, int stride_w, int dilation_h,
                                              int dilation_w, cudnnConvolutionMode_t mode,
                                              cudnnDataType_t compute_type) {
  if (const cudnnStatus_t status = cusim::admit(__func__, descriptor)) return status;
  if (pad_h < 0 || pad_w < 0 || stride_h < 1 || stride_w < 1 || dilation_h < 1 || dilation_w < 1) {
    return refuse(CUDNN_STATUS_BAD_PARAM,
                  "convolution: pads must not be negative, strides and dilations positive");
  }
  if (compute_type != CUDNN_DATA_FLOAT) {
    return refuse(CUDNN_STATUS_NOT_SUPPORTED, "convolution: compute type float only");
  }
  *descriptor = {.set = true,
                 .pad_h = pad_h,
                 .pad_w = pad_w,
                 .stride_h = stride_h,
                 .stride_w = stride_w,
                 .dilation_h = dilation_h,
                 .dilation_w = dilation_w,
                 .flipped = mode == CUDNN_CONVOLUTION};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t descriptor,
                                          cudnnMathType_t math) {
  if (const cudnnStatus_t status = cusim::admit(__func__, descriptor)) return status;
  descriptor->math = math;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionMathType(cudnnConvolutionDescriptor_t descriptor,
                                          cudnnMathType_t* math) {
  if (const cudnnStatus_t status = cusim::admit(__func__, descriptor)) return status;
  if (!math) return refuse(CUDNN_STATUS_BAD_PARAM, "math type: null pointer");
  *math = descriptor->math;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t descriptor, int groups) {
  if (const cudnnStatus_t status = cusim::admit(__func__, descriptor)) return status;
  if (groups < 1) return refuse(CUDNN_STATUS_BAD_PARAM, "groups: below 1");
  if (groups != 1) return refuse(CUDNN_STATUS_NOT_SUPPORTED, "groups: 1 only");
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreatePoolingDescriptor(cudnnPoolingDescriptor_t* descriptor) {
  return cusim::create(__func__, descriptor);
}

cudnnStatus_t cudnnDestroyPoolingDescriptor(cudnnPoolingDescriptor_t descriptor) {
  return cusim::destroy(__func__, descriptor);
}

cudnnStatus_t cudnnSetPooling2dDescriptor(cudnnPoolingDescriptor_t descriptor,
                                          cudnnPoolingMode_t mode, cudnnNanPropagation_t nan_option,
                                          int window_h, int window_w, int pad_h, int pad_w,
                                          int stride_h, int stride_w) {
  if (const cudnnStatus_t status = cusim::admit(__func__, descriptor)) return status;
  if (window_h < 1 || window_w < 1 || pad_h < 0 || pad_w < 0 || stride_h < 1 || stride_w < 1 ||
      pad_h >= window_h || pad_w >= window_w) {
    return refuse(CUDNN_STATUS_BAD_PARAM,
                  "pooling: windows and strides must be positive, pads smaller than the window");
  }
  const bool average_all = mode == CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING;
  const bool average = mode == CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING;
  *descriptor = {.set = true,
                 .pooling = {.mode = average_all ? cusim::PoolingMode::kAverageIncludePadding
                                     : average   ? cusim::PoolingMode::kAverageExcludePadding
                                                 : cusim::PoolingMode::kMax,
                             .propagate_nan = nan_option == CUDNN_PROPAGATE_NAN,
                             .window_h = window_h,
                             .window_w = window_w,
                             .pad_h = pad_h,
                             .pad_w = pad_w,
                             .stride_h = stride_h,
                             .stride_w = stride_w},
                 .deterministic = mode != CUDNN_POOLING_MAX};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateActivationDescriptor(cudnnActivationDescriptor_t* descriptor) {
  return cusim::create(__func__, descriptor);
}

cudnnStatus_t cudnnDestroyActivationDescriptor(cudnnActivationDescriptor_t descriptor) {
  return cusim::destroy(__func__, descriptor);
}

cudnnStatus_t cudnnSetActivationDescriptor(cudnnActivationDescriptor_t descriptor,
                                           cudnnActivationMode_t mode,
                                           cudnnNanPropagation_t nan_option, double) {
  if (const cudnnStatus_t status = cusim::admit(__func__, descriptor)) return status;
  cusim::Activation activation{};
  switch (mode) {
    case CUDNN_ACTIVATION_IDENTITY:
      activation = cusim::Activation::kIdentity;
      break;
    case CUDNN_ACTIVATION_RELU:
      activation = cusim::Activation::kRelu;
      break;
    case CUDNN_ACTIVATION_SIGMOID:
      activation = cusim::Activation::kSigmoid;
      break;
    case CUDNN_ACTIVATION_TANH:
      activation = cusim::Activation::kTanh;
      break;
    default:
      return refuse(CUDNN_STATUS_NOT_SUPPORTED, "activation: identity, relu, sigmoid, tanh only");
  }
  *descriptor = {true, activation, nan_option == CUDNN_PROPAGATE_NAN};
  return CUDNN_STATUS_SUCCESS;
}

}  // extern "C"
