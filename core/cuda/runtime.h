// The CUDA runtime with exceptions and owners: for files in folders named cuda or nccl. Internal.
#pragma once

#include <string>

#include <cuda_runtime_api.h>

#include "lockstep/core/context.h"
#include "lockstep/core/device.h"

namespace lockstep::cuda {

/// Throws DeviceError for anything but success: "CALL: out of memory (cudaErrorMemoryAllocation)".
void check(cudaError_t status, const char* call);
/// The same with a device in front: "cuda:2: CALL: ...".
void check(cudaError_t status, Device device, const char* call);

/// The same for destructors, which may not throw: UnheardErrors keeps the text.
void note(cudaError_t status, Device device, const char* call) noexcept;

/// What a library's status hides: the error that earlier work has left on the thread's current
/// device, for the end of a message, ": the device had failed before: TEXT (NAME)". Empty when the
/// device works. Forgets the thread's last error, as the others do.
[[nodiscard]] std::string earlier_failure();

[[noreturn]] void launch_failed(cudaError_t status, const char* operation);

/// Throws DeviceError when the last launch of this thread was refused.
inline void check_launch(const char* operation) {
  const cudaError_t status = cudaPeekAtLastError();
  if (status != cudaSuccess) launch_failed(status, operation);
}

/// The stream that everything of this context goes to; never the default stream.
[[nodiscard]] cudaStream_t stream_of(const Context& context);

}  // namespace lockstep::cuda
