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

cudnnStatus_t ready(const char* call, cudnnHandle_t handle) {
  int code = 0;
  if (fault(call, &code)) return refuse(static_cast<cudnnStatus_t>(code), "injected fault");
  if (!handle) return refuse(CUDNN_STATUS_NOT_INITIALIZED, std::string(call) + ": no handle");
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
  int code = 0;
  if (cusim::fault("cudnnCreate", &code)) {
    return refuse(static_cast<cudnnStatus_t>(code), "injected fault");
  }
  if (!handle) return refuse(CUDNN_STATUS_BAD_PARAM, "cudnnCreate: no place for the handle");
  auto made = std::make_unique<cudnnContext>();
  if (!made->memory.ready()) {
    return refuse(CUDNN_STATUS_NOT_INITIALIZED,
                  "cudnnCreate: no usable device, no memory, or a capture is going on");
  }
  *handle = made.release();
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  delete handle;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  int code = 0;
  if (cusim::fault("cudnnSetStream", &code)) {
    return refuse(static_cast<cudnnStatus_t>(code), "injected fault");
  }
  if (!handle || cusim::stream_device(stream) != handle->device) {
    return refuse(CUDNN_STATUS_BAD_PARAM,
                  "cudnnSetStream: the stream is not of the handle's device");
  }
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t* stream) {
  if (!handle || !stream) return refuse(CUDNN_STATUS_BAD_PARAM, "cudnnGetStream: null pointer");
  *stream = handle->stream;
  return CUDNN_STATUS_SUCCESS;
}

}  // extern "C"
