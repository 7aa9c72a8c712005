// Compiled once per CPU instruction set, in a namespace of its name.
#include "apps/lockstep_bench/loops.h"

namespace lockstep::apps::LOCKSTEP_CPU_SET {

namespace {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX2__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif
typedef float Floats __attribute__((vector_size(kLanes * 4)));

// Two units with a latency of four or five cycles need ten sums under way, and of sixteen registers
// factor and summand take two.
constexpr int kSums = 12;

void multiply_add(std::int64_t passes, float factor, float summand, float* out) {
  const Floats factors = factor - Floats{};
  const Floats summands = summand - Floats{};
  Floats sums[kSums];
#pragma GCC unroll 12
  for (int i = 0; i < kSums; ++i) sums[i] = static_cast<float>(i) - Floats{};
  for (std::int64_t pass = 0; pass < passes; ++pass) {
#pragma GCC unroll 12
    for (int i = 0; i < kSums; ++i) sums[i] = sums[i] * factors + summands;
  }
  Floats total{};
#pragma GCC unroll 12
  for (int i = 0; i < kSums; ++i) total += sums[i];
  __builtin_memcpy(out, &total, sizeof total);
}

void triad(float* a, const float* b, const float* c, float factor, std::int64_t count) {
  const Floats factors = factor - Floats{};
  for (std::int64_t i = 0; i < count; i += 16) {
#pragma GCC unroll 4
    for (int part = 0; part < 16; part += kLanes) {
      Floats x;
      Floats y;
      __builtin_memcpy(&x, b + i + part, sizeof x);
      __builtin_memcpy(&y, c + i + part, sizeof y);
      x += factors * y;
      __builtin_memcpy(a + i + part, &x, sizeof x);
    }
  }
}

}  // namespace

const MachineLoops loops{std::int64_t{2} * kSums * kLanes, multiply_add, kLanes, triad};

}  // namespace lockstep::apps::LOCKSTEP_CPU_SET
