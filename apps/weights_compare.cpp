#include "apps/weights_compare.h"

#include <algorithm>
#include <bit>

namespace lockstep::apps {

namespace {

/// Floats in their order as whole numbers: neighbours are 1 apart, both zeros are 0.
std::int64_t ordered(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::int64_t magnitude = bits & 0x7FFFFFFFU;
  return (bits >> 31) != 0 ? -magnitude : magnitude;
}

std::uint32_t distance(float a, float b) {
  const std::int64_t difference = ordered(a) - ordered(b);
  return static_cast<std::uint32_t>(difference < 0 ? -difference : difference);
}

}  // namespace

std::optional<WeightDifference> compare_tensors(const std::string& name, const Tensor& a,
                                                const Tensor& b) {
  WeightDifference difference{.tensor = name};
  for (std::size_t i = 0; i < a.values().size(); ++i) {
    const float left = a.values()[i];
    const float right = b.values()[i];
    if (std::bit_cast<std::uint32_t>(left) == std::bit_cast<std::uint32_t>(right)) continue;
    if (difference.count++ == 0) difference.index = static_cast<std::int64_t>(i);
    difference.ulps = std::max(difference.ulps, distance(left, right));
  }
  if (difference.count == 0) return {};
  return difference;
}

std::optional<WeightDifference> first_difference(const Model& a, const Model& b) {
  for (const Parameter& parameter : a.layout().parameters()) {
    const std::string& name = parameter.name;
    if (auto difference = compare_tensors(name, a.parameter(name), b.parameter(name))) {
      return difference;
    }
  }
  return {};
}

}  // namespace lockstep::apps
