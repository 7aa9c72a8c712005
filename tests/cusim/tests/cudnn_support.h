// Owners of cuDNN's handles and descriptors for tests.
#pragma once

#include <cudnn.h>

#include "tests/library_support.h"

namespace cusim::test {

/// Creates a handle or descriptor, and destroys it in the end.
template <class T, cudnnStatus_t (*create)(T*), cudnnStatus_t (*destroy)(T)>
class Owned {
 public:
  Owned() { REQUIRE(create(&handle_) == CUDNN_STATUS_SUCCESS); }
  ~Owned() { destroy(handle_); }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;

  operator T() const { return handle_; }  // NOLINT: it is the handle in all but name

 private:
  T handle_ = nullptr;
};

using CudnnHandle = Owned<cudnnHandle_t, cudnnCreate, cudnnDestroy>;

struct TensorDescriptor
    : Owned<cudnnTensorDescriptor_t, cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor> {
  TensorDescriptor(int n, int c, int h, int w) {
    REQUIRE(cudnnSetTensor4dDescriptor(*this, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, n, c, h, w) ==
            CUDNN_STATUS_SUCCESS);
  }
};

struct FilterDescriptor
    : Owned<cudnnFilterDescriptor_t, cudnnCreateFilterDescriptor, cudnnDestroyFilterDescriptor> {
  FilterDescriptor(int k, int c, int r, int s) {
    REQUIRE(cudnnSetFilter4dDescriptor(*this, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, k, c, r, s) ==
            CUDNN_STATUS_SUCCESS);
  }
};

struct ConvolutionDescriptor : Owned<cudnnConvolutionDescriptor_t, cudnnCreateConvolutionDescriptor,
                                     cudnnDestroyConvolutionDescriptor> {
  ConvolutionDescriptor(int pad, int stride, cudnnConvolutionMode_t mode) {
    REQUIRE(cudnnSetConvolution2dDescriptor(*this, pad, pad, stride, stride, 1, 1, mode,
                                            CUDNN_DATA_FLOAT) == CUDNN_STATUS_SUCCESS);
  }
  [[nodiscard]] cudnnMathType_t math() const {
    cudnnMathType_t type{};
    REQUIRE(cudnnGetConvolutionMathType(*this, &type) == CUDNN_STATUS_SUCCESS);
    return type;
  }
};

struct PoolingDescriptor
    : Owned<cudnnPoolingDescriptor_t, cudnnCreatePoolingDescriptor, cudnnDestroyPoolingDescriptor> {
  PoolingDescriptor(cudnnPoolingMode_t mode, int window, int stride) {
    REQUIRE(cudnnSetPooling2dDescriptor(*this, mode, CUDNN_PROPAGATE_NAN, window, window, 0, 0,
                                        stride, stride) == CUDNN_STATUS_SUCCESS);
  }
};

struct ActivationDescriptor : Owned<cudnnActivationDescriptor_t, cudnnCreateActivationDescriptor,
                                    cudnnDestroyActivationDescriptor> {
  explicit ActivationDescriptor(cudnnActivationMode_t mode) {
    REQUIRE(cudnnSetActivationDescriptor(*this, mode, CUDNN_NOT_PROPAGATE_NAN, 0) ==
            CUDNN_STATUS_SUCCESS);
  }
};

}  // namespace cusim::test
