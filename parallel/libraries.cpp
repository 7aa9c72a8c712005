#include "lockstep/parallel/libraries.h"

#include "lockstep/config.h"
#include "lockstep/kernels/libraries.h"
#include "lockstep/parallel/nccl/group.h"

namespace lockstep {

std::vector<LibraryVersion> gpu_libraries() {
  std::vector<LibraryVersion> libraries = core_libraries();
  for (LibraryVersion& library : kernel_libraries()) libraries.push_back(std::move(library));
  if constexpr (kHasNccl) libraries.push_back(nccl::library());
  return libraries;
}

}  // namespace lockstep
