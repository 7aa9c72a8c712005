// The shapes and values that both backends' max-pooling is tested on.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "lockstep/kernels/window.h"

#include "kernels/reference.h"
#include "kernels/samples.h"

namespace lockstep::test {

struct PoolCase {
  reference::Extents e;
  Window window;
};

inline PoolCase pool(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w,
                     Window window) {
  return {{n, c, h, w, c}, window};
}

inline std::vector<PoolCase> pool_cases() {
  const Window two{.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2};
  return {
      pool(16, 8, 28, 28, two),
      pool(17, 3, 7, 9, two),  // a last row and column that no window covers
      pool(1, 1, 2, 2, two),
      pool(5, 2, 7, 5, same_window(7, 5, 2, 2, 2, 2)),
      pool(3, 3, 9, 8, same_window(9, 8, 3, 3, 2, 2)),
      pool(4, 1, 6, 7, same_window(6, 7, 3, 3, 1, 1)),
      pool(33, 2, 8, 8, {.kernel_h = 3, .kernel_w = 2, .stride_h = 1, .stride_w = 3}),
      pool(2, 2, 7, 8, {.kernel_h = 2, .kernel_w = 2, .stride_h = 3, .stride_w = 3}),
      pool(2, 2, 8, 6,
           {.kernel_h = 2,
            .kernel_w = 2,
            .stride_h = 2,
            .stride_w = 2,
            .pad_bottom = 1,
            .pad_right = 1}),
      pool(2, 1, 5, 5,
           {.kernel_h = 4,
            .kernel_w = 3,
            .stride_h = 2,
            .stride_w = 1,
            .pad_top = 3,
            .pad_left = 1,
            .pad_bottom = 2,
            .pad_right = 2}),
      pool(2, 1, 16, 16, {.kernel_h = 16, .kernel_w = 16}),  // winners up to 255
  };
}

/// Few different values, so that equal ones meet; some NaN and infinities.
inline std::vector<float> awkward_values(std::int64_t count) {
  std::vector<float> x = random_values(count, 1);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = std::floor(3 * x[i]);
    if (i % 11 == 3) x[i] = i % 2 == 0 ? kNan : -kNan;
    if (i % 13 == 5) x[i] = i % 2 == 0 ? kInfinity : -kInfinity;
    if (i % 17 == 6) x[i] = -0.0F;
  }
  return x;
}

}  // namespace lockstep::test
