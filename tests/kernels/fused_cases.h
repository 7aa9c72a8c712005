// Cases of the fused convolution and pooling, and what the operations one after another make of
// them, in double. Most values are small whole numbers: then every sum is exact, ties are common,
// and nothing may differ at all.
#pragma once

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "lockstep/kernels/window.h"

#include "kernels/n16.h"
#include "kernels/reference.h"

namespace lockstep::test {

using Floats = std::vector<float>;

struct ConvPoolCase {
  std::int64_t n, c, h, w, k;
  Window conv, pool;
};

inline Window square(std::int64_t kernel, std::int64_t pad) {
  return {.kernel_h = kernel,
          .kernel_w = kernel,
          .pad_top = pad,
          .pad_left = pad,
          .pad_bottom = pad,
          .pad_right = pad};
}

inline Window side_by_side(std::int64_t kernel) {
  return {.kernel_h = kernel, .kernel_w = kernel, .stride_h = kernel, .stride_w = kernel};
}

/// The layers of the article and of LeNet-5, and shapes with odd extents, channels that are no
/// multiple of a group, rows that no window covers, uneven borders, more planes than fit at
/// once, and a batch of many parts. The last five have gradients of which planes would fill 48 KiB
/// to the last byte, which the kernel's own variables need too.
inline std::vector<ConvPoolCase> conv_pool_cases() {
  Window uneven = square(3, 1);
  uneven.pad_top = 0;
  uneven.pad_right = 2;
  return {{4, 1, 28, 28, 8, square(3, 1), side_by_side(2)},
          {4, 8, 14, 14, 16, square(3, 1), side_by_side(2)},
          {2, 1, 28, 28, 6, square(5, 2), side_by_side(2)},
          {2, 6, 14, 14, 16, square(5, 0), side_by_side(2)},
          {2, 3, 9, 11, 5, square(3, 0), side_by_side(2)},
          {2, 2, 7, 13, 3, uneven, side_by_side(3)},
          {2, 5, 10, 8, 9, square(5, 1), side_by_side(3)},
          {2, 16, 32, 30, 2, square(3, 1), side_by_side(2)},
          {2, 2, 20, 23, 32, square(5, 4), side_by_side(2)},
          {1, 1, 4, 4, 1, square(3, 0), side_by_side(2)},
          {70, 2, 4, 5, 3, square(3, 1), side_by_side(2)},
          {1, 1, 24, 36, 12, square(3, 1), side_by_side(2)},
          {1, 1, 28, 48, 8, square(3, 1), side_by_side(2)},
          {1, 1, 32, 12, 24, square(3, 1), side_by_side(2)},
          {1, 1, 18, 38, 12, square(5, 2), side_by_side(2)},
          {1, 1, 10, 62, 12, square(5, 2), side_by_side(2)}};
}

/// Whole numbers from -2 to 2.
inline Floats whole_values(std::int64_t count, std::uint64_t seed) {
  Floats values = random_values(count, seed);
  for (float& value : values) value = std::nearbyint(2.5F * value);
  return values;
}

inline Floats rounded(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

/// The same number or NaN both.
inline void require_alike(const Floats& actual, const Floats& expected) {
  REQUIRE(actual.size() == expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const bool alike =
        actual[i] == expected[i] || (std::isnan(actual[i]) && std::isnan(expected[i]));
    INFO("element " << i << " is " << actual[i] << ", expected " << expected[i]);
    if (!alike) REQUIRE(alike);
  }
}

/// A case with its values, and what the operations one after another make of them.
struct ConvPoolTrial {
  ConvPoolCase is;
  bool relu;
  Shape x_shape, w_shape, y_shape;
  Floats x, w, b, dy;
  reference::Pooled pooled;

  ConvPoolTrial(const ConvPoolCase& the_case, bool with_relu, Floats x_values, Floats w_values)
      : is(the_case),
        relu(with_relu),
        x_shape{is.n, is.c, is.h, is.w},
        w_shape{is.k, is.c, is.conv.kernel_h, is.conv.kernel_w},
        y_shape{is.n, is.k, is.pool.output_h(conv_h()), is.pool.output_w(conv_w())},
        x(std::move(x_values)),
        w(std::move(w_values)),
        b(whole_values(is.k, 3)),
        dy(whole_values(y_shape.count(), 4)),
        pooled(pool(b)) {}
  ConvPoolTrial(const ConvPoolCase& the_case, bool with_relu)
      : ConvPoolTrial(
            the_case, with_relu, whole_values(the_case.n * the_case.c * the_case.h * the_case.w, 1),
            whole_values(the_case.k * the_case.c * the_case.conv.kernel_h * the_case.conv.kernel_w,
                         2)) {}

  [[nodiscard]] std::int64_t conv_h() const { return is.conv.output_h(is.h); }
  [[nodiscard]] std::int64_t conv_w() const { return is.conv.output_w(is.w); }
  [[nodiscard]] reference::Extents extents() const { return {is.n, is.c, is.h, is.w, is.k}; }
  [[nodiscard]] reference::Pooled pool(const Floats& bias) const {
    Floats z = rounded(reference::conv_forward(extents(), is.conv, x, w, bias));
    if (relu) {
      for (float& value : z) value = value <= 0 ? 0.0F : value;
    }
    return reference::pool_forward({is.n, is.k, conv_h(), conv_w(), is.k}, is.pool, z);
  }
  /// The gradient of the convolution's output.
  [[nodiscard]] Floats conv_gradient() const {
    Floats gradient = dy;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      if (relu && pooled.y[i] <= 0) gradient[i] = 0;
    }
    return rounded(reference::pool_backward(
        static_cast<std::size_t>(is.n * is.k * conv_h() * conv_w()), pooled, gradient));
  }
};

}  // namespace lockstep::test
