// The shapes that both backends' convolutions are tested on.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/kernels/window.h"

#include "kernels/reference.h"

namespace lockstep::test {

// Float sums of up to 25 * 16 products forward, 16 * 784 for a weight: the errors of their
// roundings are independent and grow with the root of the length, to about 1e-6 of the norm; a
// wrong or missing product is above 1e-3.
inline constexpr double kConvTolerance = 3e-6;

struct ConvCase {
  reference::Extents e;
  Window window;
};

inline ConvCase same(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w, std::int64_t k,
                     std::int64_t kernel, std::int64_t stride) {
  return {{n, c, h, w, k}, same_window(h, w, kernel, kernel, stride, stride)};
}

inline std::vector<ConvCase> conv_cases() {
  return {
      same(16, 1, 28, 28, 8, 3, 1),
      same(16, 8, 14, 14, 16, 3, 1),
      same(1, 3, 7, 5, 5, 3, 1),
      same(17, 2, 6, 9, 3, 2, 1),  // even kernel: border only below and right
      same(33, 3, 9, 7, 4, 2, 2),  // odd extents under an even kernel
      same(5, 4, 11, 8, 7, 5, 2),
      same(2, 1, 10, 10, 1, 3, 3),
      same(3, 5, 8, 13, 2, 5, 3),
      same(20, 3, 4, 4, 6, 1, 1),
      same(4, 2, 7, 7, 3, 1, 2),  // stride beyond the kernel: places of x without gradient
      same(4, 2, 8, 7, 3, 2, 3),
      same(1, 1, 1, 1, 1, 3, 1),    // nearly all border
      same(2, 64, 6, 40, 5, 3, 1),  // rows larger than the cache: channels in parts, of x and of dy
      same(2, 5, 6, 40, 64, 3, 1),
      same(1, 40, 9, 41, 40, 3, 2),
      same(2, 20, 8, 8, 13, 3, 1),  // planes of 4 KiB share sets of the cache: channels in parts
      same(2, 21, 16, 8, 30, 5, 2),
      same(1, 50, 9, 41, 1, 3, 1),  // one output, and one of the gradient, whose taps slide
      same(3, 1, 12, 17, 50, 5, 1),
      same(2, 1, 9, 33, 1, 2, 1),
      same(2, 3, 6, 3, 1, 3, 1),  // and a single column that has all taps
      same(2, 1, 6, 3, 4, 3, 1),
      {{2, 3, 5, 5, 1}, {.kernel_h = 5, .kernel_w = 5}},
      {{7, 3, 9, 8, 5}, {.kernel_h = 5, .kernel_w = 2, .stride_h = 1, .stride_w = 3}},
      {{16, 6, 5, 5, 9}, {.kernel_h = 3, .kernel_w = 3}},
      {{2, 2, 6, 7, 3},
       {.kernel_h = 3,
        .kernel_w = 2,
        .stride_h = 2,
        .stride_w = 1,
        .pad_top = 2,
        .pad_left = 0,
        .pad_bottom = 1,
        .pad_right = 3}},
      {{3, 1, 5, 6, 2},
       {.kernel_h = 2,
        .kernel_w = 2,
        .pad_top = 3,
        .pad_left = 2,
        .pad_bottom = 4,
        .pad_right = 3}},
      {{3, 2, 10, 9, 2},
       {.kernel_h = 2, .kernel_w = 3, .stride_h = 3, .stride_w = 4}},  // rest of x unused
      {{17, 3, 9, 6, 11},  // few channels under a tall kernel, borders on both sides
       {.kernel_h = 7,
        .kernel_w = 3,
        .stride_h = 2,
        .pad_top = 8,
        .pad_left = 1,
        .pad_bottom = 3,
        .pad_right = 1}},
      same(2, 5, 9, 7, 6, 1, 1),  // 1x1: rows in threes, which divide nine and stay near
      // 1x1 whose places are not those of x, in one axis or by a stride that a border makes up for
      {{2, 2, 5, 4, 3}, {.kernel_h = 1, .kernel_w = 1, .pad_top = 1}},
      {{2, 2, 5, 4, 3}, {.kernel_h = 1, .kernel_w = 1, .pad_right = 2}},
      {{2, 2, 3, 4, 3},
       {.kernel_h = 1, .kernel_w = 1, .stride_h = 2, .pad_top = 1, .pad_bottom = 1}},
      {{2, 2, 4, 3, 3},
       {.kernel_h = 1, .kernel_w = 1, .stride_w = 2, .pad_left = 1, .pad_right = 1}},
      {{18, 13, 3, 3, 10},
       {.kernel_h = 3,
        .kernel_w = 3,
        .pad_top = 1,
        .pad_left = 1,
        .pad_bottom = 1,
        .pad_right = 1}},
  };
}

}  // namespace lockstep::test
