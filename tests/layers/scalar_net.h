// The mean loss of a whole model in double precision, by plain loops over one sample at a time:
// what plans are held against.
#pragma once

#include <cstdint>
#include <vector>

#include "layers/rig.h"

namespace lockstep::test {

struct ScalarLoss {
  double mean = 0;
  /// How far the nearest relu is from 0, or the nearest window's winner from its second: finite
  /// differences need this to be larger than their step. Exact zeros stem from a relu or dropout
  /// before and stay zero, so they do not count.
  double margin = 1e30;
};

/// `params` is an arena of `layout`; dropout masks are those of `seed` and epoch 0.
[[nodiscard]] ScalarLoss scalar_loss(const Sequential& model, const ParameterLayout& layout,
                                     const std::vector<double>& params, const Batch& batch,
                                     std::uint64_t seed);

}  // namespace lockstep::test
