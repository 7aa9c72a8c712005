// All libraries of NVIDIA's that this build calls.
#pragma once

#include <vector>

#include "lockstep/core/diagnostics.h"

namespace lockstep {

/// CUDA's runtime, cuBLAS, cuDNN and NCCL as far as they are built in. Throws DeviceError or
/// CommError when one does not tell its version.
[[nodiscard]] std::vector<LibraryVersion> gpu_libraries();

}  // namespace lockstep
