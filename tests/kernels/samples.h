// What the tests of the small operations share beyond n16.h.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "lockstep/core/context.h"

#include "kernels/n16.h"
#include "support/catch.h"

namespace lockstep::test {

inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Calls `check(context)` for every instruction set of this processor.
template <class F>
void for_each_set(F&& check) {
  for (const CpuSet set : supported_cpu_sets()) {
    INFO("instruction set " << name_of(set));
    Context context(Device{}, set);
    check(context);
  }
}

/// Uniform values in [low, high), the same for the same seed.
inline std::vector<float> random_values(std::int64_t count, std::uint64_t seed, float low,
                                        float high) {
  std::vector<float> values = random_values(count, seed);
  for (float& value : values) value = low + (high - low) * (value + 1) / 2;
  return values;
}

/// Where element e of sample n lies in Layout::n16.
inline std::size_t n16_index(std::int64_t features, std::int64_t n, std::int64_t e) {
  return static_cast<std::size_t>(n / kN16 * features * kN16 + e * kN16 + n % kN16);
}

/// Equal bit by bit: tells NaN from numbers and 0 from -0.
template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

}  // namespace lockstep::test
