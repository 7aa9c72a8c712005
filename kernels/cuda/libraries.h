// Versions of the libraries under the kernels. No CUDA type. Internal.
#pragma once

#include "lockstep/core/diagnostics.h"

namespace lockstep::cuda {

/// Throws DeviceError when the library does not tell its version.
[[nodiscard]] LibraryVersion cublas_library();
[[nodiscard]] LibraryVersion cudnn_library();

}  // namespace lockstep::cuda
