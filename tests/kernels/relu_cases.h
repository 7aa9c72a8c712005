// The values that both backends' ReLU is tested on.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/samples.h"

namespace lockstep::test {

inline const std::vector<std::int64_t> kReluCounts = {1, 3, 4, 7, 8, 15, 16, 17, 33, 100};

inline std::vector<float> values_with_specials(std::int64_t count, std::uint32_t stream) {
  std::vector<float> values = random_values(count, stream);
  const float specials[] = {-0.0F, 0.0F, kNan, kInfinity, -kInfinity};
  for (std::size_t i = 0; i < values.size(); i += 3) values[i] = specials[i / 3 % 5];
  return values;
}

inline bool alike(float a, float b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

}  // namespace lockstep::test
