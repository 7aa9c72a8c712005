// The sizes that both backends' fully connected layers are tested on.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::test {

// Float sums of up to 784 products: their roundings reach about 1e-6 of the norm; a wrong product
// is above 1e-3.
inline constexpr double kLinearTolerance = 3e-6;

struct LinearCase {
  std::int64_t n, d, o;
};

inline const std::vector<LinearCase> kLinearCases = {
    {16, 784, 10}, {1, 1, 1},   {1, 17, 3},   {17, 16, 16}, {33, 31, 13},  {48, 7, 25},
    {5, 130, 1},   {16, 3, 12}, {20, 64, 24}, {2, 15, 37},  {80, 300, 70}, {144, 97, 130}};

}  // namespace lockstep::test
