// Drawn digits for machines without MNIST.
#pragma once

#include <cstdint>

#include "lockstep/data/dataset.h"

namespace lockstep {

struct SyntheticOptions {
  std::int64_t train = 55000;
  std::int64_t validation = 5000;
  std::int64_t test = 10000;
  std::uint64_t seed = 0;
};

/// 28 x 28 uint8 digits of 10 classes: strokes through a random affine map and stroke width. Equal
/// for equal options; sample i of a split does not depend on how many there are.
[[nodiscard]] DatasetSplits synthetic_digits(const SyntheticOptions& options = {});

}  // namespace lockstep
