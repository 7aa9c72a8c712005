// Helpers of the operations' tests: values, the layout n16, comparison.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "lockstep/core/random.h"
#include "lockstep/core/tensor.h"

#include "support/catch.h"

namespace lockstep::test {

/// Uniform values in [-1, 1), the same for the same seed.
inline std::vector<float> random_values(std::int64_t count, std::uint64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const PhiloxBlock block = random_block({.seed = seed}, 0, static_cast<std::uint32_t>(i / 4));
    values[i] = 2 * uniform_float(block[i % 4]) - 1;
  }
  return values;
}

/// `shape` with its batch filled up to whole groups of 16.
inline Shape filled_up(const Shape& shape) {
  return shape.without_first().with_first(round_up(shape[0], kN16));
}

/// Canonical values of `shape` in n16; places beyond the batch get `filler`.
template <class T>
std::vector<T> to_n16(const std::vector<T>& canonical, const Shape& shape, T filler = T{}) {
  const std::int64_t features = shape.without_first().count();
  std::vector<T> blocked(static_cast<std::size_t>(filled_up(shape).count()), filler);
  for (std::int64_t n = 0; n < shape[0]; ++n) {
    for (std::int64_t i = 0; i < features; ++i) {
      blocked[static_cast<std::size_t>((n / kN16 * features + i) * kN16 + n % kN16)] =
          canonical[static_cast<std::size_t>(n * features + i)];
    }
  }
  return blocked;
}

/// The first samples of n16 values as canonical values of `shape`.
template <class T>
std::vector<T> from_n16(const std::vector<T>& blocked, const Shape& shape) {
  const std::int64_t features = shape.without_first().count();
  std::vector<T> canonical(static_cast<std::size_t>(shape.count()));
  for (std::int64_t n = 0; n < shape[0]; ++n) {
    for (std::int64_t i = 0; i < features; ++i) {
      canonical[static_cast<std::size_t>(n * features + i)] =
          blocked[static_cast<std::size_t>((n / kN16 * features + i) * kN16 + n % kN16)];
    }
  }
  return canonical;
}

/// What outputs hold before a call that must overwrite them.
inline std::vector<float> not_written(std::int64_t count) {
  return std::vector<float>(static_cast<std::size_t>(count),
                            std::numeric_limits<float>::quiet_NaN());
}

/// Requires that all values are finite and that the norm of the difference is at most `tolerance`
/// of the norm expected.
template <class Actual>
void close(const std::vector<Actual>& actual, const std::vector<double>& expected,
           double tolerance) {
  REQUIRE(actual.size() == expected.size());
  double norm = 0, error = 0, worst = -1;
  std::size_t worst_index = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double difference = std::abs(static_cast<double>(actual[i]) - expected[i]);
    if (!std::isfinite(difference)) {
      INFO("element " << i << " is " << actual[i] << ", expected " << expected[i]);
      REQUIRE(std::isfinite(difference));
    }
    norm += expected[i] * expected[i];
    error += difference * difference;
    if (difference > worst) {
      worst = difference;
      worst_index = i;
    }
  }
  if (actual.empty()) return;
  INFO("worst element " << worst_index << " is " << actual[worst_index] << ", expected "
                        << expected[worst_index]);
  REQUIRE(std::sqrt(error) <= tolerance * std::sqrt(norm));
}

}  // namespace lockstep::test
