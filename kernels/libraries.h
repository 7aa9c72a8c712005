// The libraries that the kernels call.
#pragma once

#include <vector>

#include "lockstep/core/diagnostics.h"

namespace lockstep {

/// cuBLAS, and cuDNN where this build has it; none in a build without CUDA. Throws DeviceError when
/// one does not tell its version.
[[nodiscard]] std::vector<LibraryVersion> kernel_libraries();

}  // namespace lockstep
