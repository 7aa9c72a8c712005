#include "lockstep/kernels/cuda/handles.h"

#include <cstddef>

#include "lockstep/core/cuda/runtime.h"
#include "lockstep/core/error.h"
#include "lockstep/core/unheard.h"
#include "lockstep/kernels/cuda/libraries.h"

namespace lockstep::cuda {
namespace {

/// What NVIDIA recommends. With a workspace of a fixed size a product has the same bits every time,
/// and a captured one allocates nothing.
std::size_t cublas_workspace_bytes(Device device) {
  int major = 0;
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device.index), device,
        "cudaDeviceGetAttribute");
  constexpr std::size_t kMebibyte = 1 << 20;
  return (major >= 9 ? 32 : 4) * kMebibyte;
}

}  // namespace

void check(cublasStatus_t status, Device device, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  std::string cause = earlier_failure();
  if (cause.empty() && status == CUBLAS_STATUS_ALLOC_FAILED) {
    cause = message(": cuBLAS found no memory, ", free_device_memory(device),
                    " bytes are free; use a smaller batch, more GPUs or --data-resident off");
  }
  throw DeviceError(
      message(device.to_string(), ": ", call, ": ", cublasGetStatusString(status), cause));
}

Handles::Handles(const Context& context)
    : device_(context.device()),
      cublas_workspace_(device_, cublas_workspace_bytes(device_), "cuBLAS"),
      tickets_(device_, kTickets * sizeof(unsigned), "the tickets of sums") {
  check(cublasCreate(&cublas_), device_, "cublasCreate");
  try {
    // In this order: a new stream takes the workspace away.
    check(cublasSetStream(cublas_, stream_of(context)), device_, "cublasSetStream");
    check(cublasSetWorkspace(cublas_, cublas_workspace_.data(), cublas_workspace_.bytes()), device_,
          "cublasSetWorkspace");
    check(cublasSetMathMode(cublas_, context.precision() == Precision::tf32
                                         ? CUBLAS_TF32_TENSOR_OP_MATH
                                         : CUBLAS_DEFAULT_MATH),
          device_, "cublasSetMathMode");
  } catch (...) {
    static_cast<void>(cublasDestroy(cublas_));
    throw;
  }
}

Handles::~Handles() {
  const CurrentDevice current(device_, std::nothrow);
  convolutions.reset();
  if (const cublasStatus_t status = cublasDestroy(cublas_); status != CUBLAS_STATUS_SUCCESS) {
    UnheardErrors::add("cuda:", device_.index, ": cublasDestroy: ", cublasGetStatusString(status));
  }
}

LibraryVersion cublas_library() {
  std::string loaded;
  for (const libraryPropertyType part : {MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL}) {
    int number = 0;
    const cublasStatus_t status = cublasGetProperty(part, &number);
    if (status != CUBLAS_STATUS_SUCCESS) {
      throw DeviceError(message("cublasGetProperty: ", cublasGetStatusString(status)));
    }
    loaded += message(loaded.empty() ? "" : ".", number);
  }
  return {.name = "cuBLAS",
          .built = message(CUBLAS_VER_MAJOR, '.', CUBLAS_VER_MINOR, '.', CUBLAS_VER_PATCH),
          .loaded = loaded,
          .files = mapped_files("libcublas")};
}

Handles& handles_of(Context& context) {
  std::unique_ptr<BackendState>& place = context.handles();
  if (place == nullptr) place = std::make_unique<Handles>(context);
  return static_cast<Handles&>(*place);
}

}  // namespace lockstep::cuda
