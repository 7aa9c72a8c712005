// The order in which an epoch visits the samples.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep {

/// Overwrites `order` (resized once) with a uniformly random permutation of 0..count-1 that depends
/// on seed and epoch alone: Fisher-Yates with Philox and Lemire's unbiased bounded numbers.
/// Allocates nothing when `order` has the capacity.
void shuffle_epoch(std::uint64_t seed, std::uint32_t epoch, std::int64_t count,
                   std::vector<std::int32_t>& order);

}  // namespace lockstep
