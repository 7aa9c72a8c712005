// The arithmetic of the simulated convolutions and poolings against plain loops in double
// precision.
#include <algorithm>
#include <cmath>
#include <limits>

#include "cudnn/convolution.h"
#include "cudnn/elementwise.h"
#include "cudnn/pooling.h"
#include "tests/library_support.h"

namespace cusim {
namespace {

using test::values;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// A tensor in the order n, h, w, c in memory, with a gap after every row.
Tensor gapped(Index n, Index c, Index h, Index w) {
  const Index row = w * c + 5;
  return {{n, c, h, w}, {h * row, 1, row, c}};
}

Convolution convolution(const Tensor& x, Index k, Index r, Index s, Index pad, Index stride,
                        Index dilation, bool flipped) {
  const Index h = output_extent(x.h(), pad, r, stride, dilation);
  const Index w = output_extent(x.w(), pad, s, stride, dilation);
  const bool gaps = x.steps[1] == 1;
  return {.x = x,
          .y = gaps ? gapped(x.n(), k, h, w) : packed_tensor(x.n(), k, h, w),
          .r = r,
          .s = s,
          .pad_h = pad,
          .pad_w = pad,
          .stride_h = stride,
          .stride_w = stride,
          .dilation_h = dilation,
          .dilation_w = dilation,
          .flipped = flipped};
}

std::vector<Convolution> convolutions() {
  std::vector<Convolution> all;
  for (const bool flipped : {false, true}) {
    all.push_back(convolution(packed_tensor(2, 3, 8, 7), 4, 3, 3, 1, 1, 1, flipped));
    all.push_back(convolution(packed_tensor(1, 1, 5, 6), 2, 2, 3, 0, 1, 1, flipped));
    all.push_back(convolution(packed_tensor(3, 2, 9, 8), 3, 3, 2, 2, 2, 1, flipped));
    all.push_back(convolution(packed_tensor(2, 2, 9, 10), 5, 3, 3, 2, 1, 2, flipped));
    all.push_back(convolution(packed_tensor(1, 2, 4, 4), 1, 3, 3, 3, 3, 1, flipped));
    all.push_back(convolution(gapped(2, 3, 6, 5), 4, 3, 3, 1, 2, 1, flipped));
  }
  return all;
}

/// Calls `visit(place in x, place in w, place in y)` for every product of the definition.
template <class Visit>
void for_each_product(const Convolution& conv, Visit visit) {
  for_each_place(conv.y, [&](Index n, Index k, Index oh, Index ow) {
    for (Index c = 0; c < conv.x.c(); ++c) {
      for (Index r = 0; r < conv.r; ++r) {
        for (Index s = 0; s < conv.s; ++s) {
          const Index tap_h = conv.flipped ? conv.r - 1 - r : r;
          const Index tap_w = conv.flipped ? conv.s - 1 - s : s;
          const Index h = oh * conv.stride_h - conv.pad_h + tap_h * conv.dilation_h;
          const Index w = ow * conv.stride_w - conv.pad_w + tap_w * conv.dilation_w;
          if (h < 0 || h >= conv.x.h() || w < 0 || w >= conv.x.w()) continue;
          visit(static_cast<std::size_t>(conv.x.offset(n, c, h, w)),
                static_cast<std::size_t>(((k * conv.x.c() + c) * conv.r + r) * conv.s + s),
                static_cast<std::size_t>(conv.y.offset(n, k, oh, ow)));
        }
      }
    }
  });
}

void check_near(const std::vector<float>& got, const std::vector<double>& wanted) {
  REQUIRE(got.size() == wanted.size());
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    worst = std::max(worst, std::abs(got[i] - wanted[i]));
  }
  CHECK(worst < 2e-5);
}

/// What `blend` makes of sums at the places of `shape`; elsewhere `before`.
std::vector<double> blended(const Tensor& shape, const std::vector<double>& sums, Blend blend,
                            const std::vector<float>& before) {
  std::vector<double> result(before.begin(), before.end());
  for_each_place(shape, [&](Index n, Index c, Index h, Index w) {
    const auto i = static_cast<std::size_t>(shape.offset(n, c, h, w));
    result[i] = double{blend.alpha} * sums[i] + double{blend.beta} * before[i];
  });
  return result;
}

TEST_CASE("convolutions and their gradients are near the sums of the definition") {
  for (const Convolution& conv : convolutions()) {
    const Tensor w_shape = packed_tensor(conv.y.c(), conv.x.c(), conv.r, conv.s);
    const std::vector<float> x = values(conv.x.span(), 1);
    const std::vector<float> w = values(w_shape.span(), 2);
    const std::vector<float> y = values(conv.y.span(), 3);
    std::vector<double> y_sums(y.size());
    std::vector<double> x_sums(x.size());
    std::vector<double> w_sums(w.size());
    for_each_product(conv, [&](std::size_t i, std::size_t j, std::size_t o) {
      y_sums[o] += double{x[i]} * w[j];
      x_sums[i] += double{y[o]} * w[j];
      w_sums[j] += double{y[o]} * x[i];
    });
    const Blend blend{.alpha = 0.5F, .beta = -2};
    for (const bool any_order : {false, true}) {
      std::vector<float> out = y;
      convolution_forward(conv, x.data(), w.data(), blend, out.data());
      check_near(out, blended(conv.y, y_sums, blend, y));
      out = x;
      convolution_backward_data(conv, w.data(), y.data(), blend, any_order, out.data());
      check_near(out, blended(conv.x, x_sums, blend, x));
      out = w;
      convolution_backward_filter(conv, x.data(), y.data(), blend, any_order, out.data());
      check_near(out, blended(w_shape, w_sums, blend, w));
    }
  }
}

TEST_CASE("the bias gradient sums over everything but channels") {
  const Tensor shape = gapped(3, 2, 4, 5);
  const std::vector<float> dy = values(shape.span(), 4);
  std::vector<double> sums(2);
  for_each_place(shape, [&](Index n, Index c, Index h, Index w) {
    sums[static_cast<std::size_t>(c)] += dy[static_cast<std::size_t>(shape.offset(n, c, h, w))];
  });
  std::vector<float> db{1, 2};
  convolution_backward_bias(shape, dy.data(), {.alpha = 2, .beta = 3}, db.data());
  CHECK(db[0] == Approx(2 * sums[0] + 3));
  CHECK(db[1] == Approx(2 * sums[1] + 6));
}

TEST_CASE("beta 0 does not read what was there") {
  const Convolution conv = convolutions().front();
  const std::vector<float> x = values(conv.x.span(), 1);
  const std::vector<float> w = values(static_cast<std::size_t>(conv.taps() * conv.y.c()), 2);
  std::vector<float> y(conv.y.span(), kNan);
  convolution_forward(conv, x.data(), w.data(), {}, y.data());
  CHECK(std::none_of(y.begin(), y.end(), [](float v) { return std::isnan(v); }));
}

TEST_CASE("algorithms of any order differ from run to run, the others do not") {
  const Convolution conv = convolution(packed_tensor(16, 4, 12, 12), 4, 3, 3, 1, 1, 1, false);
  const std::vector<float> x = values(conv.x.span(), 1);
  const std::vector<float> w = values(static_cast<std::size_t>(conv.taps() * conv.y.c()), 2);
  const std::vector<float> dy = values(conv.y.span(), 3);
  for (const bool any_order : {false, true}) {
    std::vector<float> dx[2] = {x, x};
    std::vector<float> dw[2] = {w, w};
    for (int run = 0; run < 2; ++run) {
      convolution_backward_data(conv, w.data(), dy.data(), {}, any_order, dx[run].data());
      convolution_backward_filter(conv, x.data(), dy.data(), {}, any_order, dw[run].data());
    }
    CHECK((dx[0] == dx[1]) == !any_order);
    CHECK((dw[0] == dw[1]) == !any_order);
  }
}

TEST_CASE("extents of outputs") {
  CHECK(output_extent(28, 1, 3, 1) == 28);
  CHECK(output_extent(7, 0, 2, 2) == 3);
  CHECK(output_extent(5, 0, 3, 1, 2) == 1);
  CHECK(output_extent(4, 0, 3, 1, 2) == 0);
}

TEST_CASE("poolings of a small image") {
  const Tensor x_shape = packed_tensor(1, 1, 3, 3);
  const Tensor y_shape = packed_tensor(1, 1, 2, 2);
  const std::vector<float> x{1, 2, 3, 4, 9, 6, 7, 8, 5};
  const std::vector<float> dy{1, 10, 100, 1000};
  Pooling pooling{.window_h = 2, .window_w = 2};
  const auto forward = [&] {
    std::vector<float> y(4, kNan);
    pooling_forward(pooling, x_shape, x.data(), {}, y_shape, y.data());
    return y;
  };
  const auto backward = [&] {
    const std::vector<float> y = forward();
    std::vector<float> dx(9, kNan);
    pooling_backward(pooling, y_shape, y.data(), y_shape, dy.data(), x_shape, x.data(), {}, false,
                     x_shape, dx.data());
    return dx;
  };
  CHECK(forward() == std::vector<float>{9, 9, 9, 9});
  CHECK(backward() == std::vector<float>{0, 0, 0, 0, 1111, 0, 0, 0, 0});

  pooling.mode = PoolingMode::kAverageIncludePadding;
  CHECK(forward() == std::vector<float>{4, 5, 7, 7});
  CHECK(backward() == std::vector<float>{0.25, 2.75, 2.5, 25.25, 277.75, 252.5, 25, 275, 250});

  pooling = {.window_h = 2, .window_w = 2, .pad_h = 1, .pad_w = 1, .stride_h = 2, .stride_w = 2};
  CHECK(forward() == std::vector<float>{1, 3, 7, 9});
  pooling.mode = PoolingMode::kAverageIncludePadding;
  CHECK(forward() == std::vector<float>{0.25, 1.25, 2.75, 7});
  pooling.mode = PoolingMode::kAverageExcludePadding;
  CHECK(forward() == std::vector<float>{1, 2.5, 5.5, 7});
}

TEST_CASE("a maximum passes NaN on when asked to, and its gradient finds it") {
  const Tensor x_shape = packed_tensor(1, 1, 1, 4);
  const Tensor y_shape = packed_tensor(1, 1, 1, 2);
  const std::vector<float> x{3, kNan, 5, 5};
  const std::vector<float> dy{1, 2};
  for (const bool propagate : {false, true}) {
    const Pooling pooling{.propagate_nan = propagate, .window_w = 2, .stride_w = 2};
    std::vector<float> y(2);
    pooling_forward(pooling, x_shape, x.data(), {}, y_shape, y.data());
    CHECK(std::isnan(y[0]) == propagate);
    CHECK((propagate || y[0] == 3));
    std::vector<float> dx(4);
    pooling_backward(pooling, y_shape, y.data(), y_shape, dy.data(), x_shape, x.data(), {}, false,
                     x_shape, dx.data());
    // Of equal values the first one takes the gradient.
    CHECK(dx == (propagate ? std::vector<float>{0, 1, 2, 0} : std::vector<float>{1, 0, 2, 0}));
  }
}

TEST_CASE("activations and their slopes") {
  CHECK(activate(Activation::kRelu, false, kNan) == 0);
  CHECK(std::isnan(activate(Activation::kRelu, true, kNan)));
  const Tensor shape = packed_tensor(1, 1, 1, 2);
  const std::vector<float> x{-0.5F, 0.5F};
  const std::vector<float> dy{1, 1};
  constexpr float kStep = 1e-3F;
  for (const auto activation :
       {Activation::kIdentity, Activation::kRelu, Activation::kSigmoid, Activation::kTanh}) {
    std::vector<float> y(2);
    std::vector<float> dx(2, 1.0F);
    activation_forward(activation, false, shape, x.data(), {}, shape, y.data());
    activation_backward(activation, shape, y.data(), shape, dy.data(), shape, x.data(),
                        {.alpha = 1, .beta = 1}, shape, dx.data());
    for (std::size_t i = 0; i < 2; ++i) {
      const float slope =
          (activate(activation, false, x[i] + kStep) - activate(activation, false, x[i] - kStep)) /
          (2 * kStep);
      CHECK(dx[i] == Approx(1 + slope).epsilon(1e-3));
    }
  }
}

TEST_CASE("adding repeats extents of 1") {
  const Tensor shape = packed_tensor(2, 2, 1, 2);
  std::vector<float> c{1, 2, 3, 4, 5, 6, 7, 8};
  const std::vector<float> a{10, 20};
  add_tensor(packed_tensor(1, 2, 1, 1), a.data(), {.alpha = 1, .beta = 2}, shape, c.data());
  CHECK(c == std::vector<float>{12, 14, 26, 28, 20, 22, 34, 36});
}

}  // namespace
}  // namespace cusim
