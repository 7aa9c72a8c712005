// The tables of the instruction sets: each set has its own kernels, and a context computes with
// those of its set.
#include "lockstep/config.h"
#include "lockstep/core/context.h"
#include "lockstep/kernels/cpu/kernels.h"
#include "lockstep/kernels/linear.h"

#include "support/throws.h"

namespace lockstep {
namespace {

using namespace test;

TEST_CASE("every supported set has kernels of its own") {
  const std::vector<CpuSet> sets = supported_cpu_sets();
  for (const CpuSet a : sets) {
    REQUIRE(cpu::kernels(a).conv.forward != nullptr);
    for (const CpuSet b : sets) {
      if (a == b) continue;
      INFO(name_of(a) << " and " << name_of(b));
      CHECK(&cpu::kernels(a) != &cpu::kernels(b));
      CHECK(cpu::kernels(a).conv.forward != cpu::kernels(b).conv.forward);
      CHECK(cpu::kernels(a).linear.forward != cpu::kernels(b).linear.forward);
      CHECK(cpu::kernels(a).pool.forward != cpu::kernels(b).pool.forward);
    }
  }
}

// GCC fuses only where it optimises, and not under UBSan, which the asan preset has.
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__)
constexpr bool kCompilerFuses = true;
#else
constexpr bool kCompilerFuses = false;
#endif

TEST_CASE(
    "a context computes with its own set: only sets beyond the baseline fuse multiply and add") {
  // (1 + 2^-12)^2 - (1 + 2^-11) is 2^-24, which a product rounded to float loses.
  const float a = 1 + 0x1p-12F;
  const std::vector<float> x(16, a), w{a}, b{-(1 + 0x1p-11F)};
  for (const CpuSet set : supported_cpu_sets()) {
    Context context{Device{}, set};
    std::vector<float> y(16, 1);
    linear_forward(context, {x.data(), {16, 1}, Layout::n16}, {w.data(), {1, 1}}, {b.data(), {1}},
                   {y.data(), {16, 1}, Layout::n16});
    INFO(name_of(set));
    const bool can_fuse = set != CpuSet::baseline || !kHasX86Sets;
    CHECK(y == std::vector<float>(16, can_fuse && kCompilerFuses ? 0x1p-24F : 0.0F));
  }
}

}  // namespace
}  // namespace lockstep
