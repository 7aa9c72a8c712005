// The CUDA runtime with exceptions and owners: for files in folders named cuda or nccl. Internal.
#pragma once

#include <cuda_runtime_api.h>

#include "lockstep/core/context.h"
#include "lockstep/core/device.h"

namespace lockstep::cuda {

/// Throws DeviceError for anything but success: "WHAT: out of memory (cudaErrorMemoryAllocation)".
void check(cudaError_t status, const char* what);
/// The same with the device in front: "cuda:2: WHAT: ...".
void check(cudaError_t status, const Context& context, const char* what);

/// Throws DeviceError when the last launch of this thread was refused.
inline void check_launch(const char* kernel) {
  check(cudaPeekAtLastError(), kernel);
}

/// The stream that everything of this context goes to; never the default stream.
[[nodiscard]] cudaStream_t stream_of(const Context& context);

}  // namespace lockstep::cuda
