// Where two sets of weights of one model differ first, and by how much.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lockstep/layers/model.h"

namespace lockstep::apps {

struct WeightDifference {
  std::string tensor;      ///< "conv_1.weight"
  std::int64_t index = 0;  ///< of the first element that differs
  std::int64_t count = 0;  ///< elements of the tensor that differ
  std::uint32_t ulps = 0;  ///< largest distance in it, in representable floats
};

/// Where the bits of two tensors of one shape differ.
[[nodiscard]] std::optional<WeightDifference> compare_tensors(const std::string& name,
                                                              const Tensor& a, const Tensor& b);

/// The first parameter of `a`, in the order of the layers, whose bits differ from those of `b`.
[[nodiscard]] std::optional<WeightDifference> first_difference(const Model& a, const Model& b);

}  // namespace lockstep::apps
