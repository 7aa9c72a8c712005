// Max-pooling on every instruction set against the reference: values and winners exactly.
#include "lockstep/kernels/pool.h"

#include "kernels/pool_cases.h"
#include "kernels/reference.h"
#include "support/throws.h"

namespace lockstep {
namespace {

using namespace test;
using Case = PoolCase;

template <class Test>
void for_all(Test test) {
  for (const CpuSet set : supported_cpu_sets()) {
    for (const Case& c : pool_cases()) {
      Context context{Device{}, set};
      const Shape x_shape{c.e.n, c.e.c, c.e.h, c.e.w};
      const Shape y_shape{c.e.n, c.e.c, c.window.output_h(c.e.h), c.window.output_w(c.e.w)};
      INFO(name_of(set) << ", x " << x_shape << ", kernel " << c.window.kernel_h << " x "
                        << c.window.kernel_w << ", y " << y_shape);
      test(context, c, x_shape, y_shape);
    }
  }
}

TEST_CASE(
    "maxpool2d_forward finds the largest value, the first of equals, the first NaN before all") {
  for_all([](Context& context, const Case& c, const Shape& x_shape, const Shape& y_shape) {
    const std::vector<float> canonical = awkward_values(x_shape.count());
    const reference::Pooled expected = reference::pool_forward(c.e, c.window, canonical);
    const std::vector<float> x = to_n16(canonical, x_shape);
    std::vector<float> y(static_cast<std::size_t>(filled_up(y_shape).count()), -77.0F);
    std::vector<std::uint8_t> argmax(y.size(), 0xEE);
    maxpool2d_forward(context, c.window, {x.data(), filled_up(x_shape), Layout::n16},
                      {y.data(), filled_up(y_shape), Layout::n16},
                      {argmax.data(), filled_up(y_shape), Layout::n16});
    REQUIRE(same_bits(from_n16(y, y_shape), expected.y));
    REQUIRE(from_n16(argmax, y_shape) == expected.argmax);

    std::vector<float> y_alone(y.size(), -77.0F);
    maxpool2d_forward(context, c.window, {x.data(), filled_up(x_shape), Layout::n16},
                      {y_alone.data(), filled_up(y_shape), Layout::n16}, {});
    REQUIRE(same_bits(y_alone, y));
  });
}

TEST_CASE("maxpool2d_backward gives each gradient to the winner") {
  for_all([](Context& context, const Case& c, const Shape& x_shape, const Shape& y_shape) {
    const reference::Pooled pooled =
        reference::pool_forward(c.e, c.window, awkward_values(x_shape.count()));
    const std::vector<float> canonical = random_values(y_shape.count(), 2);
    const std::vector<float> dy = to_n16(canonical, y_shape);
    const std::vector<std::uint8_t> argmax = to_n16(pooled.argmax, y_shape);
    std::vector<float> dx = not_written(filled_up(x_shape).count());
    maxpool2d_backward(context, c.window, {dy.data(), filled_up(y_shape), Layout::n16},
                       {argmax.data(), filled_up(y_shape), Layout::n16},
                       {dx.data(), filled_up(x_shape), Layout::n16});
    // Sums of at most a few gradients: rounding alone stays far below this.
    close(from_n16(dx, x_shape),
          reference::pool_backward(static_cast<std::size_t>(x_shape.count()), pooled, canonical),
          1e-6);
    REQUIRE(dx == to_n16(from_n16(dx, x_shape), x_shape));
  });
}

TEST_CASE("maxpool2d_backward keeps a gradient that is not finite at the winner") {
  for (const CpuSet set : supported_cpu_sets()) {
    Context context{Device{}, set};
    const Window window{.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2};
    const std::vector<float> dy(16, kInfinity);
    const std::vector<std::uint8_t> argmax(16, 2);
    std::vector<float> dx = not_written(64);
    maxpool2d_backward(context, window, {dy.data(), {16, 1, 1, 1}, Layout::n16},
                       {argmax.data(), {16, 1, 1, 1}, Layout::n16},
                       {dx.data(), {16, 1, 2, 2}, Layout::n16});
    for (std::size_t i = 0; i < dx.size(); ++i) REQUIRE(dx[i] == (i / 16 == 2 ? kInfinity : 0.0F));
  }
}

TEST_CASE("maxpool2d refuses what does not fit, and says which argument of which operation") {
  Context context{Device{}};
  const Window window{.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2};
  const Shape x_shape{16, 2, 6, 6}, y_shape{16, 2, 3, 3};
  std::vector<float> memory(16 * 2 * 6 * 6);
  std::vector<std::uint8_t> bytes(memory.size());
  const FloatView x{memory.data(), x_shape, Layout::n16}, y{memory.data(), y_shape, Layout::n16};
  const View<std::uint8_t> argmax{bytes.data(), y_shape, Layout::n16};
  const auto says = [&](const Window& win, FloatView x_in, FloatView y_in,
                        View<std::uint8_t> argmax_in) {
    return message_of<ShapeError>([&] { maxpool2d_forward(context, win, x_in, y_in, argmax_in); });
  };
  CHECK(contains(says(window, {memory.data(), x_shape}, y, argmax),
                 "maxpool2d_forward: x has layout canonical"));
  CHECK(contains(says(window, {memory.data(), {16, 72}, Layout::n16}, y, argmax), "x is (16, 72)"));
  CHECK(contains(says(window, x, {memory.data(), {16, 2, 3, 4}, Layout::n16}, argmax),
                 "y is (16, 2, 3, 4)"));
  CHECK(contains(says(window, x, y, {bytes.data(), {16, 2, 2, 3}, Layout::n16}),
                 "argmax is (16, 2, 2, 3)"));
  CHECK(contains(says(window, x, y, {bytes.data(), y_shape}), "argmax has layout canonical"));
  CHECK(contains(says({.kernel_h = 7, .kernel_w = 2}, x, y, argmax), "does not fit"));
  CHECK(contains(says({.kernel_h = 2, .kernel_w = 2, .pad_top = 2, .pad_left = 0}, x, y, argmax),
                 "cover a place"));
  CHECK(contains(says({.kernel_h = 2, .kernel_w = 2, .pad_bottom = 2}, x, y, argmax),
                 "cover a place"));
  CHECK(contains(says({.kernel_h = 17,
                       .kernel_w = 16,
                       .pad_top = 6,
                       .pad_left = 6,
                       .pad_bottom = 6,
                       .pad_right = 6},
                      x, y, argmax),
                 "256"));
  CHECK(contains(
      message_of<ShapeError>([&] {
        maxpool2d_backward(context, window, {memory.data(), {32, 2, 3, 3}, Layout::n16}, argmax, x);
      }),
      "maxpool2d_backward: dy is (32, 2, 3, 3)"));
  CHECK(contains(message_of<UsageError>([&] { maxpool2d_backward(context, window, y, {}, x); }),
                 "argmax is null"));
}

}  // namespace
}  // namespace lockstep
