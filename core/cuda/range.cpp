#include <nvtx3/nvToolsExt.h>

#include "lockstep/core/cuda/backend.h"

namespace lockstep::cuda {

void push_range(const char* name) {
  static_cast<void>(nvtxRangePushA(name));
}

void pop_range() noexcept {
  static_cast<void>(nvtxRangePop());
}

}  // namespace lockstep::cuda
