#include "runtime/status.h"

#include <array>
#include <exception>
#include <string>
#include <utility>

#include "runtime/device.h"
#include "runtime/settings.h"
#include "runtime/trace.h"

namespace cusim {

namespace {

thread_local cudaError_t last_error = cudaSuccess;
thread_local bool inside_operation = false;

struct ErrorText {
  cudaError_t code;
  const char* name;
  const char* text;
};

constexpr std::array kErrors = {
    ErrorText{cudaSuccess, "cudaSuccess", "no error"},
    ErrorText{cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    ErrorText{cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    ErrorText{cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration",
              "invalid configuration argument"},
    ErrorText{cudaErrorInvalidSymbol, "cudaErrorInvalidSymbol", "invalid device symbol"},
    ErrorText{cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
              "CUDA driver version is insufficient for CUDA runtime version"},
    ErrorText{cudaErrorMissingConfiguration, "cudaErrorMissingConfiguration",
              "launch without a configuration"},
    ErrorText{cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction",
              "invalid device function"},
    ErrorText{cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    ErrorText{cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    ErrorText{cudaErrorNoKernelImageForDevice, "cudaErrorNoKernelImageForDevice",
              "no kernel image is available for execution on the device"},
    ErrorText{cudaErrorSharedObjectInitFailed, "cudaErrorSharedObjectInitFailed",
              "shared object initialization failed"},
    ErrorText{cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle",
              "invalid resource handle"},
    ErrorText{cudaErrorIllegalState, "cudaErrorIllegalState",
              "the operation cannot be performed in the present state"},
    ErrorText{cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    ErrorText{cudaErrorIllegalAddress, "cudaErrorIllegalAddress",
              "an illegal memory access was encountered"},
    ErrorText{cudaErrorAssert, "cudaErrorAssert", "device-side assert triggered"},
    ErrorText{cudaErrorMisalignedAddress, "cudaErrorMisalignedAddress", "misaligned address"},
    ErrorText{cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    ErrorText{cudaErrorNotPermitted, "cudaErrorNotPermitted", "operation not permitted"},
    ErrorText{cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
    ErrorText{cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
              "operation not permitted when stream is capturing"},
    ErrorText{cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
              "operation failed due to a previous error during capture"},
    ErrorText{cudaErrorStreamCaptureMerge, "cudaErrorStreamCaptureMerge",
              "operation would result in a merge of separate capture sequences"},
    ErrorText{cudaErrorStreamCaptureUnmatched, "cudaErrorStreamCaptureUnmatched",
              "capture was not ended in the same stream as it began"},
    ErrorText{cudaErrorStreamCaptureUnjoined, "cudaErrorStreamCaptureUnjoined",
              "capturing stream has unjoined work"},
    ErrorText{cudaErrorStreamCaptureIsolation, "cudaErrorStreamCaptureIsolation",
              "dependency created on uncaptured work in another stream"},
    ErrorText{cudaErrorStreamCaptureImplicit, "cudaErrorStreamCaptureImplicit",
              "operation would make the legacy stream depend on a capturing blocking stream"},
    ErrorText{cudaErrorCapturedEvent, "cudaErrorCapturedEvent",
              "operation not permitted on an event last recorded in a capturing stream"},
    ErrorText{cudaErrorStreamCaptureWrongThread, "cudaErrorStreamCaptureWrongThread",
              "attempt to terminate a thread-local capture sequence from another thread"},
    ErrorText{cudaErrorUnknown, "cudaErrorUnknown", "unknown error"},
};

const ErrorText& error_text(cudaError_t code) {
  static constexpr ErrorText unknown{cudaErrorUnknown, "unrecognized error code",
                                     "unrecognized error code"};
  for (const ErrorText& entry : kErrors) {
    if (entry.code == code) return entry;
  }
  return unknown;
}

}  // namespace

void require_callable() {
  require(settings().driver >= CUDART_VERSION / 1000 * 1000, cudaErrorInsufficientDriver);
  require(settings().devices > 0, cudaErrorNoDevice);
  require(!inside_operation, cudaErrorNotPermitted);
}

cudaError_t sticky_error(int index) {
  return static_cast<cudaError_t>(device(index).sticky.load(std::memory_order_relaxed));
}

void raise_if_failed(int index) {
  require(sticky_error(index) == cudaSuccess, sticky_error(index));
}

cudaError_t record_error(cudaError_t code) {
  last_error = code;
  return code;
}

void set_sticky(int index, int code, const char* message) {
  int none = 0;
  if (device(index).sticky.compare_exchange_strong(none, code, std::memory_order_relaxed)) {
    report("device " + std::to_string(index) + " fails with error " + std::to_string(code) + ": " +
           message);
  }
}

void execute(const Operation& operation, int index, std::uint64_t stream) {
  if (!operation.always && sticky_error(index) != cudaSuccess) return;
  const TraceSpan span(operation, index, stream);
  const bool nested = std::exchange(inside_operation, true);
  try {
    operation.run();
  } catch (const KernelError& error) {
    set_sticky(index, error.code, (operation.name + ": " + error.message).c_str());
  } catch (const std::exception& error) {
    set_sticky(index, cudaErrorLaunchFailure, (operation.name + ": " + error.what()).c_str());
  }
  inside_operation = nested;
}

}  // namespace cusim

using namespace cusim;

cudaError_t cudaPeekAtLastError() {
  if (settings().devices > 0 && sticky_error(current_device())) {
    return sticky_error(current_device());
  }
  return last_error;
}

cudaError_t cudaGetLastError() {
  const cudaError_t error = cudaPeekAtLastError();
  last_error = cudaSuccess;
  return error;
}

const char* cudaGetErrorString(cudaError_t code) {
  return error_text(code).text;
}

const char* cudaGetErrorName(cudaError_t code) {
  return error_text(code).name;
}
