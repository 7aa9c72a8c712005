// Fixed numbers for tests, equal on every machine.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/core/random.h"

namespace lockstep::test {

/// Number `index` of stream `stream`, in [-1, 1).
inline float value(std::uint32_t stream, std::int64_t index) {
  const RandomKey key{.seed = 99, .purpose = RandomPurpose::synthetic, .item = stream};
  return 2 * uniform_float(random_block(key, 0, static_cast<std::uint32_t>(index))[0]) - 1;
}

inline std::vector<float> values(std::uint32_t stream, std::int64_t count) {
  std::vector<float> all;
  for (std::int64_t i = 0; i < count; ++i) all.push_back(value(stream, i));
  return all;
}

}  // namespace lockstep::test
