#include "lockstep/kernels/cuda/handles.h"

#include <cstddef>

#include "lockstep/core/cuda/runtime.h"
#include "lockstep/core/error.h"

namespace lockstep::cuda {
namespace {

/// What NVIDIA recommends. With a workspace of a fixed size a product has the same bits every time,
/// and a captured one allocates nothing.
std::size_t cublas_workspace_bytes(Device device) {
  int major = 0;
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device.index),
        "cudaDeviceGetAttribute");
  constexpr std::size_t kMebibyte = 1 << 20;
  return (major >= 9 ? 32 : 4) * kMebibyte;
}

}  // namespace

void check(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw DeviceError(message(what, ": cuBLAS: ", cublasGetStatusString(status)));
}

Handles::Handles(const Context& context)
    : device_(context.device()),
      cublas_workspace_(device_, cublas_workspace_bytes(device_), "cuBLAS"),
      tickets_(device_, kTickets * sizeof(unsigned), "the tickets of sums") {
  check(cublasCreate(&cublas_), "cublasCreate");
  try {
    // In this order: a new stream takes the workspace away.
    check(cublasSetStream(cublas_, stream_of(context)), "cublasSetStream");
    check(cublasSetWorkspace(cublas_, cublas_workspace_.data(), cublas_workspace_.bytes()),
          "cublasSetWorkspace");
    check(cublasSetMathMode(cublas_, context.precision() == Precision::tf32
                                         ? CUBLAS_TF32_TENSOR_OP_MATH
                                         : CUBLAS_DEFAULT_MATH),
          "cublasSetMathMode");
  } catch (...) {
    static_cast<void>(cublasDestroy(cublas_));
    throw;
  }
}

Handles::~Handles() {
  try {
    const CurrentDevice current(device_);
    convolutions.reset();
    static_cast<void>(cublasDestroy(cublas_));
  } catch (const Error&) {
    // A device that cannot be made current has lost its handles already.
  }
}

Handles& handles_of(Context& context) {
  std::unique_ptr<BackendState>& place = context.handles();
  if (place == nullptr) place = std::make_unique<Handles>(context);
  return static_cast<Handles&>(*place);
}

}  // namespace lockstep::cuda
