// Internal.
#pragma once

#include <cuda_runtime_api.h>

namespace lockstep::cuda {

/// cudaSuccess when the current device can run what this build compiled, else why not.
[[nodiscard]] cudaError_t probe_kernel_image();

}  // namespace lockstep::cuda
