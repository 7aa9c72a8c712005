// Values, layouts and comparisons that the tests of operations share.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "lockstep/core/context.h"
#include "lockstep/core/random.h"
#include "lockstep/core/tensor.h"

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

/// `count` reproducible values in [low, high); `stream` tells sequences apart.
inline std::vector<float> random_values(std::int64_t count, std::uint32_t stream, float low = -1,
                                        float high = 1) {
  std::vector<float> values;
  for (std::uint32_t i = 0; static_cast<std::int64_t>(values.size()) < count; ++i) {
    const RandomKey key{.seed = 1, .purpose = RandomPurpose::synthetic, .item = stream};
    values.push_back(low + (high - low) * uniform_float(random_block(key, i, 0)[0]));
  }
  return values;
}

/// What outputs are filled with, so that a place that nobody wrote is seen.
inline std::vector<float> unwritten(std::int64_t count) {
  return std::vector<float>(static_cast<std::size_t>(count), kNan);
}

/// Where element e of sample n lies in Layout::n16.
inline std::size_t n16_index(std::int64_t features, std::int64_t n, std::int64_t e) {
  return static_cast<std::size_t>((n / 16) * features * 16 + e * 16 + n % 16);
}

/// Canonical (samples, features) to n16 with room for `padded` samples; places without a sample
/// hold `filling`.
template <class T>
std::vector<T> to_n16(const std::vector<T>& canonical, std::int64_t features, std::int64_t padded,
                      T filling) {
  std::vector<T> values(static_cast<std::size_t>(padded * features), filling);
  for (std::size_t i = 0; i < canonical.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    values[n16_index(features, at / features, at % features)] = canonical[i];
  }
  return values;
}

/// Equal bit by bit: tells NaN from numbers and 0 from -0.
template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

}  // namespace lockstep::test
