#include "lockstep/kernels/libraries.h"

#include "lockstep/config.h"
#include "lockstep/kernels/cuda/libraries.h"

namespace lockstep {

std::vector<LibraryVersion> kernel_libraries() {
  std::vector<LibraryVersion> libraries;
  if constexpr (kHasCuda) libraries.push_back(cuda::cublas_library());
  if constexpr (kHasCudnn) libraries.push_back(cuda::cudnn_library());
  return libraries;
}

}  // namespace lockstep
