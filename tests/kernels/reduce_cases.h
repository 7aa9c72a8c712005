// What the tests of the sums share.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "lockstep/kernels/reduce.h"

#include "kernels/samples.h"

namespace lockstep::test {

inline const std::vector<std::int64_t> kSumCounts = {0,    1,    15,   16,           17,
                                                     4095, 4096, 4097, 3 * 4096 + 5, 7 * 4096};

/// The scratch as it must be before the first use: the tickets 0, the rest anything.
inline std::vector<double> scratch_for(std::int64_t count) {
  std::vector<double> scratch(static_cast<std::size_t>(sum_scratch_doubles(count)), std::nan(""));
  std::fill_n(scratch.begin(), kSumTickets, 0.0);
  return scratch;
}

/// Element i of parts [first, first + count), summed by the tree that splits at the largest power
/// of two.
inline float tree_of(const std::vector<float>& parts, int first, int count, std::int64_t stride,
                     std::int64_t i) {
  if (count == 1) return parts[static_cast<std::size_t>(first * stride + i)];
  const auto half = static_cast<int>(std::bit_floor(static_cast<unsigned>(count - 1)));
  return tree_of(parts, first, half, stride, i) +
         tree_of(parts, first + half, count - half, stride, i);
}

}  // namespace lockstep::test
