// Small learnable data for tests, the same everywhere.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/core/random.h"
#include "lockstep/data/dataset.h"

namespace lockstep::test {

/// `count` images (1, extent, extent) of `classes` classes: noise, and a bright column whose place
/// is the class.
inline Dataset striped_images(std::int64_t count, std::int64_t extent, int classes,
                              std::uint64_t seed = 1) {
  std::vector<std::uint8_t> bytes;
  std::vector<std::int32_t> labels;
  for (std::int64_t i = 0; i < count; ++i) {
    const RandomKey key{.seed = seed, .purpose = RandomPurpose::synthetic};
    const auto sample = static_cast<std::uint32_t>(i);
    const auto label = static_cast<std::int32_t>(random_block(key, sample, 0)[0] %
                                                 static_cast<std::uint32_t>(classes));
    labels.push_back(label);
    for (std::int64_t place = 0; place < extent * extent; ++place) {
      const std::uint32_t noise =
          random_block(key, sample, static_cast<std::uint32_t>(1 + place))[0] % 120;
      const bool bright = place % extent == label % extent;
      bytes.push_back(static_cast<std::uint8_t>(bright ? 130 + noise : noise));
    }
  }
  return Dataset::from_bytes("striped images", Shape{1, extent, extent}, std::move(bytes),
                             std::move(labels), classes);
}

}  // namespace lockstep::test
