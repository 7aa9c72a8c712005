#include "lockstep/core/cuda/runtime.h"

#include "lockstep/core/error.h"

namespace lockstep::cuda {

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // so that no later call reports this one
  throw DeviceError(
      message(what, ": ", cudaGetErrorString(status), " (", cudaGetErrorName(status), ")"));
}

void check(cudaError_t status, const Context& context, const char* what) {
  if (status == cudaSuccess) return;
  check(status, message(context.device().to_string(), ": ", what).c_str());
}

}  // namespace lockstep::cuda
