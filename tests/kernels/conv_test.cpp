// Convolution on every instruction set against the double-precision reference.
#include "lockstep/kernels/conv.h"

#include <cstring>

#include "kernels/conv_cases.h"
#include "kernels/n16.h"
#include "kernels/reference.h"
#include "support/throws.h"

namespace lockstep {
namespace {

using namespace test;
using Case = ConvCase;

constexpr double kTolerance = kConvTolerance;
/// Of drawn cases, whose outputs may be few and small beside the products they are sums of.
constexpr double kDrawnTolerance = 10 * kConvTolerance;

/// Small geometries of any kind, the same ones every time: kernels beyond the image, borders beyond
/// the kernel, rows of one column, strides that leave places out.
std::vector<Case> drawn_cases() {
  std::uint32_t state = 7;
  const auto from = [&state](std::int64_t least, std::int64_t most) {
    state = state * 1664525U + 1013904223U;
    return least + static_cast<std::int64_t>(state >> 8) % (most - least + 1);
  };
  std::vector<Case> cases;
  while (cases.size() < 300) {
    // One channel often: it has ways of its own.
    const auto channels = [&] { return from(0, 2) == 0 ? 1 : from(1, 9); };
    const Case drawn{{from(1, 17), channels(), from(1, 9), from(1, 9), channels()},
                     {.kernel_h = from(1, 5),
                      .kernel_w = from(1, 5),
                      .stride_h = from(1, 3),
                      .stride_w = from(1, 3),
                      .pad_top = from(0, 4),
                      .pad_left = from(0, 4),
                      .pad_bottom = from(0, 4),
                      .pad_right = from(0, 4)}};
    const bool fits = drawn.window.output_h(drawn.e.h) > 0 && drawn.window.output_w(drawn.e.w) > 0;
    if (fits) cases.push_back(drawn);
  }
  return cases;
}

/// One case with its values, on one instruction set.
struct Trial {
  Case is;
  double tolerance = kTolerance;
  Context context;
  Shape x_shape, w_shape, y_shape;
  std::vector<float> x, w, b, dy;

  Trial(const Case& the_case, CpuSet set)
      : is(the_case),
        context(Device{}, set),
        x_shape{is.e.n, is.e.c, is.e.h, is.e.w},
        w_shape{is.e.k, is.e.c, is.window.kernel_h, is.window.kernel_w},
        y_shape{is.e.n, is.e.k, is.window.output_h(is.e.h), is.window.output_w(is.e.w)},
        x(random_values(x_shape.count(), 1)),
        w(random_values(w_shape.count(), 2)),
        b(random_values(is.e.k, 3)),
        dy(random_values(y_shape.count(), 4)) {
    context.reserve_workspace(
        conv2d_workspace_bytes(context, is.window, filled_up(x_shape), w_shape));
    std::memset(context.workspace(), 0xFF,
                context.workspace_bytes());  // NaN, should anything read what it never wrote
  }

  [[nodiscard]] ConstFloatView weights() const { return {w.data(), w_shape}; }
};

template <class Test>
void for_all(Test test) {
  for (const CpuSet set : supported_cpu_sets()) {
    std::vector<Case> cases = conv_cases();
    const std::size_t listed = cases.size();
    for (const Case& drawn : drawn_cases()) cases.push_back(drawn);
    for (std::size_t i = 0; i < cases.size(); ++i) {
      Trial trial(cases[i], set);
      if (i >= listed) trial.tolerance = kDrawnTolerance;
      INFO(name_of(set) << ", x " << trial.x_shape << ", w " << trial.w_shape << ", y "
                        << trial.y_shape);
      test(trial);
    }
  }
}

TEST_CASE("conv2d_forward is the sum of its formula") {
  for_all([](Trial& t) {
    for (const bool with_bias : {true, false}) {
      const std::vector<float> x = to_n16(t.x, t.x_shape);
      std::vector<float> y = not_written(filled_up(t.y_shape).count());
      conv2d_forward(t.context, t.is.window, {x.data(), filled_up(t.x_shape), Layout::n16},
                     t.weights(),
                     with_bias ? ConstFloatView{t.b.data(), {t.is.e.k}} : ConstFloatView{},
                     {y.data(), filled_up(t.y_shape), Layout::n16});
      close(from_n16(y, t.y_shape),
            reference::conv_forward(t.is.e, t.is.window, t.x, t.w,
                                    with_bias ? t.b : std::vector<float>{}),
            t.tolerance);
      for (const float value : y) REQUIRE(std::isfinite(value));
    }
  });
}

TEST_CASE("conv2d_backward_data is the transpose of forward") {
  for_all([](Trial& t) {
    const std::vector<float> dy = to_n16(t.dy, t.y_shape);
    std::vector<float> dx = not_written(filled_up(t.x_shape).count());
    conv2d_backward_data(t.context, t.is.window, {dy.data(), filled_up(t.y_shape), Layout::n16},
                         t.weights(), {dx.data(), filled_up(t.x_shape), Layout::n16});
    const std::vector<float> canonical = from_n16(dx, t.x_shape);
    close(canonical, reference::conv_backward_data(t.is.e, t.is.window, t.dy, t.w), t.tolerance);
    // A place without a sample has no gradient.
    REQUIRE(dx == to_n16(canonical, t.x_shape));
  });
}

TEST_CASE(
    "conv2d_backward_parameters sums over samples and positions, fresh or onto what is there") {
  for_all([](Trial& t) {
    // Places beyond the batch hold something in x: their dy of 0 must keep it out.
    const std::vector<float> x = to_n16(t.x, t.x_shape, 7.0F);
    const std::vector<float> dy = to_n16(t.dy, t.y_shape);
    std::vector<double> dw_expected =
        reference::conv_weight_gradient(t.is.e, t.is.window, t.x, t.dy);
    std::vector<double> db_expected =
        reference::bias_gradient(t.is.e.n, t.is.e.k, t.y_shape[2] * t.y_shape[3], t.dy);
    std::vector<float> dw = not_written(t.w_shape.count());
    std::vector<float> db = not_written(t.is.e.k);
    const auto run = [&](bool with_bias, bool accumulate) {
      conv2d_backward_parameters(
          t.context, t.is.window, {x.data(), filled_up(t.x_shape), Layout::n16},
          {dy.data(), filled_up(t.y_shape), Layout::n16}, {dw.data(), t.w_shape},
          with_bias ? FloatView{db.data(), {t.is.e.k}} : FloatView{}, accumulate);
    };
    run(false, false);
    close(dw, dw_expected, t.tolerance);
    REQUIRE(std::isnan(db[0]));
    dw = not_written(t.w_shape.count());
    run(true, false);
    close(dw, dw_expected, t.tolerance);
    close(db, db_expected, t.tolerance);

    dw = random_values(t.w_shape.count(), 5);
    db = random_values(t.is.e.k, 6);
    for (std::size_t i = 0; i < dw.size(); ++i) dw_expected[i] += dw[i];
    for (std::size_t i = 0; i < db.size(); ++i) db_expected[i] += db[i];
    run(true, true);
    close(dw, dw_expected, t.tolerance);
    close(db, db_expected, t.tolerance);
  });
}

TEST_CASE("conv2d refuses what does not fit, and says which argument of which operation") {
  Context context{Device{}};
  const Window window{.kernel_h = 3, .kernel_w = 3};
  const Shape x_shape{16, 2, 6, 6}, w_shape{4, 2, 3, 3}, y_shape{16, 4, 4, 4};
  std::vector<float> memory(4096);
  const FloatView x{memory.data(), x_shape, Layout::n16}, w{memory.data(), w_shape},
      b{memory.data(), {4}}, y{memory.data(), y_shape, Layout::n16};
  const auto says = [&](const Window& win, FloatView x_in, FloatView w_in, FloatView b_in,
                        FloatView y_in) {
    return message_of<ShapeError>([&] { conv2d_forward(context, win, x_in, w_in, b_in, y_in); });
  };
  CHECK(contains(message_of<UsageError>([&] { conv2d_forward(context, window, x, w, b, y); }),
                 "workspace"));
  context.reserve_workspace(conv2d_workspace_bytes(context, window, x_shape, w_shape));
  CHECK(contains(says(window, {memory.data(), x_shape}, w, b, y),
                 "conv2d_forward: x has layout canonical"));
  CHECK(contains(says(window, x, w, b, {memory.data(), y_shape}),
                 "conv2d_forward: y has layout canonical"));
  CHECK(contains(says(window, {memory.data(), {15, 2, 6, 6}, Layout::n16}, w, b, y),
                 "multiple of 16"));
  CHECK(contains(says(window, {memory.data(), {16, 72}, Layout::n16}, w, b, y), "x is (16, 72)"));
  CHECK(contains(says(window, x, {memory.data(), {4, 3, 3, 3}}, b, y), "(4, 3, 3, 3)"));
  CHECK(contains(says(window, x, {memory.data(), {4, 18}}, b, y), "(K, C, R, S)"));
  CHECK(contains(says(window, x, {memory.data(), w_shape, Layout::n16}, b, y), "w has layout n16"));
  CHECK(contains(says(window, x, w, {memory.data(), {5}}, y), "b is (5); it must be (4)"));
  CHECK(contains(says(window, x, w, b, {memory.data(), {16, 4, 4, 5}, Layout::n16}),
                 "y is (16, 4, 4, 5)"));
  CHECK(contains(says({.kernel_h = 3, .kernel_w = 3, .stride_w = 0}, x, w, b, y), "stride"));
  CHECK(contains(says({.kernel_h = 3, .kernel_w = 3, .pad_left = -1}, x, w, b, y), "padding"));
  CHECK(contains(says({.kernel_h = 7, .kernel_w = 3}, x, {memory.data(), {4, 2, 7, 3}}, b, y),
                 "does not fit"));
  CHECK(contains(
      message_of<ShapeError>([&] {
        conv2d_backward_data(context, window, {memory.data(), {32, 4, 4, 4}, Layout::n16}, w, x);
      }),
      "conv2d_backward_data: dy is (32, 4, 4, 4); it must be (16, 4, 4, 4)"));
  CHECK(
      contains(message_of<ShapeError>([&] {
                 conv2d_backward_parameters(context, window, x, y, w, {memory.data(), {3}}, false);
               }),
               "conv2d_backward_parameters: db is (3)"));
}

}  // namespace
}  // namespace lockstep
