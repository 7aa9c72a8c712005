// Handles, versions and errors of the simulated libcudnn.
#include <algorithm>
#include <memory>

#include "cudnn/handles.h"

namespace cusim {
namespace {

thread_local std::string last_error;

}  // namespace

cudnnStatus_t refuse(cudnnStatus_t status, const std::string& why) {
  last_error = why;
  return status;
}

LiveHandles<cudnnHandle_t>& live_handles() {
  static auto& all = *new LiveHandles<cudnnHandle_t>("cudnn_handles");
  return all;
}

LiveHandles<const void*>& live_descriptors() {
  static auto& all = *new LiveHandles<const void*>("cudnn_descriptors");
  return all;
}

cudnnStatus_t pass(const char* call) {
  int code = 0;
  if (fault(call, &code)) return refuse(static_cast<cudnnStatus_t>(code), "injected fault");
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t ready(const char* call, cudnnHandle_t handle) {
  if (const cudnnStatus_t status = pass(call)) return status;
  if (!live_handles().contains(handle)) {
    return refuse(CUDNN_STATUS_NOT_INITIALIZED, std::string(call) + ": no such handle");
  }
  if (current_device() != handle->device || stream_device(handle->stream) != handle->device) {
    return refuse(CUDNN_STATUS_EXECUTION_FAILED,
                  std::string(call) + ": the handle belongs to device " +
                      std::to_string(handle->device) +
                      ", which must be current and the stream's device");
  }
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace cusim

using cusim::refuse;

extern "C" {

size_t cudnnGetVersion() {
  return CUDNN_VERSION;
}

size_t cudnnGetCudartVersion() {
  return CUDART_VERSION;
}

const char* cudnnGetErrorString(cudnnStatus_t status) {
  switch (status) {
    case CUDNN_STATUS_SUCCESS:
      return "CUDNN_STATUS_SUCCESS";
    case CUDNN_STATUS_NOT_INITIALIZED:
      return "CUDNN_STATUS_NOT_INITIALIZED";
    case CUDNN_STATUS_BAD_PARAM:
      return "CUDNN_STATUS_BAD_PARAM";
    case CUDNN_STATUS_NOT_SUPPORTED:
      return "CUDNN_STATUS_NOT_SUPPORTED";
    case CUDNN_STATUS_INTERNAL_ERROR:
      return "CUDNN_STATUS_INTERNAL_ERROR";
    case CUDNN_STATUS_EXECUTION_FAILED:
      return "CUDNN_STATUS_EXECUTION_FAILED";
    default:
      return "CUDNN_UNKNOWN_STATUS";
  }
}

void cudnnGetLastErrorString(char* message, size_t max_size) {
  if (!message || max_size == 0) return;
  const std::size_t length = std::min(cusim::last_error.size(), max_size - 1);
  std::copy_n(cusim::last_error.data(), length, message);
  message[length] = '\0';
  cusim::last_error.clear();
}

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  if (const cudnnStatus_t status = cusim::pass(__func__)) return status;
  if (!handle) return refuse(CUDNN_STATUS_BAD_PARAM, "cudnnCreate: no place for the handle");
  auto made = std::make_unique<cudnnContext>();
  if (!made->memory.ready()) {
    return refuse(CUDNN_STATUS_NOT_INITIALIZED,
                  "cudnnCreate: no usable device, no memory, or a capture is going on");
  }
  *handle = cusim::live_handles().add(made.release());
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  const cudnnStatus_t status = cusim::pass(__func__);
  if (!cusim::live_handles().remove(handle)) {
    return refuse(CUDNN_STATUS_NOT_INITIALIZED, "cudnnDestroy: no such handle");
  }
  delete handle;
  return status;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  if (const cudnnStatus_t status = cusim::pass(__func__)) return status;
  if (!cusim::live_handles().contains(handle) || cusim::stream_device(stream) != handle->device) {
    return refuse(CUDNN_STATUS_BAD_PARAM,
                  "cudnnSetStream: the stream is not of the handle's device");
  }
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t* stream) {
  if (const cudnnStatus_t status = cusim::pass(__func__)) return status;
  if (!cusim::live_handles().contains(handle) || !stream) {
    return refuse(CUDNN_STATUS_BAD_PARAM, "cudnnGetStream: no such handle or a null pointer");
  }
  *stream = handle->stream;
  return CUDNN_STATUS_SUCCESS;
}

}  // extern "C"
