// The loops that measure what a core can do at best, compiled once per CPU instruction set. Nothing
// inline stands here: the linker would keep one set's copy for all.
#pragma once

#include <cstdint>

namespace lockstep::apps {

struct MachineLoops {
  /// Floating-point operations of one pass of `multiply_add`.
  std::int64_t flops;
  /// `passes` passes of independent multiply-adds in registers; their results, `lanes` floats, go
  /// to `out`.
  void (*multiply_add)(std::int64_t passes, float factor, float summand, float* out);
  std::int64_t lanes;
  /// a = b + factor * c, `count` floats each, a multiple of 16. No array may overlap another.
  void (*triad)(float* a, const float* b, const float* c, float factor, std::int64_t count);
};

namespace baseline {
extern const MachineLoops loops;
}
namespace avx2 {
extern const MachineLoops loops;
}
namespace avx512 {
extern const MachineLoops loops;
}

}  // namespace lockstep::apps
