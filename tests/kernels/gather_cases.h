// What the tests of gather share: data sets, and what a gathered block must hold.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/kernels/gather.h"

#include "kernels/samples.h"

namespace lockstep::test {

inline constexpr std::int64_t kSoftClasses = 3;

/// A small data set with every kind of sample and target.
struct Data {
  std::int64_t count, features;
  std::vector<std::uint8_t> bytes;
  std::vector<float> floats;
  std::vector<std::int32_t> classes;
  std::vector<float> soft;

  Data(std::int64_t n, std::int64_t f)
      : count(n),
        features(f),
        floats(random_values(n * f, 1)),
        soft(random_values(n * kSoftClasses, 2, 0, 1)) {
    for (const float value : random_values(n * f, 3, 0, 256))
      bytes.push_back(static_cast<std::uint8_t>(value));
    for (std::int64_t i = 0; i < n; ++i) classes.push_back(static_cast<std::int32_t>(i % 10 + 1));
  }
  [[nodiscard]] DeviceSamples with_bytes() const {
    return {.bytes = bytes.data(),
            .classes = classes.data(),
            .count = count,
            .features = features,
            .scale = 1.0F / 255.0F};
  }
  [[nodiscard]] DeviceSamples with_floats() const {
    return {.floats = floats.data(),
            .soft = soft.data(),
            .count = count,
            .features = features,
            .soft_classes = kSoftClasses,
            .scale = 99.0F};
  }
};

inline std::vector<std::int32_t> backwards(std::int64_t count) {
  std::vector<std::int32_t> permutation;
  for (std::int64_t i = count; i-- > 0;) permutation.push_back(static_cast<std::int32_t>(i));
  return permutation;
}

/// A gathered block, canonical.
struct Gathered {
  std::vector<float> x, soft;
  std::vector<std::int32_t> index, classes;
};

/// Requires that the block holds the samples `expected`, -1 for none; their classes when the data
/// set was given with bytes, else their soft targets.
inline void check_gathered(const Data& data, bool bytes, const std::vector<std::int32_t>& expected,
                           const Gathered& block) {
  REQUIRE(block.index == expected);
  const std::int64_t features = data.features;
  for (std::size_t n = 0; n < expected.size(); ++n) {
    const std::int32_t sample = expected[n];
    for (std::int64_t e = 0; e < features; ++e) {
      float want = 0;
      const auto at = static_cast<std::size_t>(sample * features + e);
      if (sample >= 0)
        want = bytes ? static_cast<float>(data.bytes[at]) * (1.0F / 255.0F) : data.floats[at];
      INFO("place " << n << ", element " << e << " of " << features);
      REQUIRE(block.x[n * static_cast<std::size_t>(features) + static_cast<std::size_t>(e)] ==
              want);
    }
    if (bytes) {
      REQUIRE(block.classes[n] ==
              (sample < 0 ? 0 : data.classes[static_cast<std::size_t>(sample)]));
      continue;
    }
    for (std::size_t c = 0; c < kSoftClasses; ++c) {
      REQUIRE(block.soft[n * kSoftClasses + c] ==
              (sample < 0 ? 0.0F : data.soft[static_cast<std::size_t>(sample) * kSoftClasses + c]));
    }
  }
}

}  // namespace lockstep::test
