// What stands behind cuDNN's opaque types, and the checks that all of its calls share.
//
// The simulated libcudnn knows tensors of floats with any strides, filters in the order k, c, r, s,
// and group count 1; it answers CUDNN_STATUS_NOT_SUPPORTED to the rest. Like the simulated cuBLAS
// it refuses a handle while another device is current,
// and handles and descriptors that were destroyed.
//
// Counter: convolutions (forward and backward, bias gradients not). Faults: each function that
// returns a status is a point by its name.
#pragma once

#include <string>
#include <utility>

#include <cudnn.h>

#include "cublas/library.h"
#include "cudnn/elementwise.h"
#include "cudnn/pooling.h"
#include "cudnn/tensor.h"
#include "runtime/device_api.h"
#include "runtime/live.h"

struct cudnnContext {
  cusim::HandleMemory memory;
  int device = cusim::current_device();
  cudaStream_t stream = nullptr;
};

struct cudnnTensorStruct {
  bool set = false;
  cusim::Tensor tensor;
};

struct cudnnFilterStruct {
  bool set = false;
  cusim::Index k = 0, c = 0, r = 0, s = 0;
};

struct cudnnConvolutionStruct {
  bool set = false;
  cusim::Index pad_h = 0, pad_w = 0, stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  bool flipped = false;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
};

struct cudnnPoolingStruct {
  bool set = false;
  cusim::Pooling pooling;
  bool deterministic = true;
};

struct cudnnActivationStruct {
  bool set = false;
  cusim::Activation activation = cusim::Activation::kIdentity;
  bool propagate_nan = false;
};

namespace cusim {

/// Returns `status` and keeps `why` for cudnnGetLastErrorString of this thread.
cudnnStatus_t refuse(cudnnStatus_t status, const std::string& why);

/// Success, or the fault injected at `call`.
cudnnStatus_t pass(const char* call);

/// Success, or why `call` cannot work now: an injected fault, no handle, another device.
cudnnStatus_t ready(const char* call, cudnnHandle_t handle);

LiveHandles<cudnnHandle_t>& live_handles();
LiveHandles<const void*>& live_descriptors();

/// Whether this is a descriptor that was made and not destroyed.
inline bool is_live(const void* descriptor) {
  return live_descriptors().contains(descriptor);
}

/// True when there are descriptors and all have been set.
template <class... Descriptors>
bool all_set(const Descriptors*... descriptors) {
  return ((is_live(descriptors) && descriptors->set) && ...);
}

/// The scaling factors of a call, read now.
inline Blend read_blend(const void* alpha, const void* beta) {
  return {*static_cast<const float*>(alpha), *static_cast<const float*>(beta)};
}

/// Puts `run` on the handle's stream.
template <class Run>
cudnnStatus_t enqueue_call(const char* call, cudnnHandle_t handle, Run run) {
  const cudaError_t error = enqueue(handle->stream, {Kind::library, call, std::move(run)});
  return error == cudaSuccess ? CUDNN_STATUS_SUCCESS
                              : refuse(CUDNN_STATUS_EXECUTION_FAILED, cudaGetErrorString(error));
}

/// The host address of a tensor's or filter's elements; throws KernelError.
template <class T>
T* elements(T* data, const Tensor& tensor, int device, const char* what) {
  return host_pointer(data, tensor.span(), device, what);
}

}  // namespace cusim
