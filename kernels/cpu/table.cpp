// Picks the kernels of an instruction set. Compiled once, with the baseline's flags.
#include "lockstep/config.h"
#include "lockstep/core/device.h"
#include "lockstep/kernels/cpu/kernels.h"

namespace lockstep::cpu {

namespace baseline {
extern const Kernels kernels_table;
}
namespace avx2 {
extern const Kernels kernels_table;
}
namespace avx512 {
extern const Kernels kernels_table;
}

const Kernels& kernels(CpuSet set) {
  if constexpr (kHasX86Sets) {
    if (set == CpuSet::avx512) return avx512::kernels_table;
    if (set == CpuSet::avx2) return avx2::kernels_table;
  }
  return baseline::kernels_table;
}

}  // namespace lockstep::cpu
