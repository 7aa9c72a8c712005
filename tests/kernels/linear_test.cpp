// The fully connected layer on every instruction set against the double-precision reference.
#include "lockstep/kernels/linear.h"

#include "kernels/linear_cases.h"
#include "kernels/n16.h"
#include "kernels/reference.h"
#include "support/throws.h"

namespace lockstep {
namespace {

using namespace test;

using Case = LinearCase;

constexpr double kTolerance = kLinearTolerance;

/// One case with its values, on one instruction set.
struct Trial {
  Case is;
  Context context;
  Shape x_shape, w_shape, y_shape;
  std::vector<float> x, w, b, dy;

  Trial(const Case& the_case, CpuSet set)
      : is(the_case),
        context(Device{}, set),
        x_shape{is.n, is.d},
        w_shape{is.o, is.d},
        y_shape{is.n, is.o},
        x(random_values(x_shape.count(), 1)),
        w(random_values(w_shape.count(), 2)),
        b(random_values(is.o, 3)),
        dy(random_values(y_shape.count(), 4)) {}
};

template <class Test>
void for_all(Test test) {
  for (const CpuSet set : supported_cpu_sets()) {
    for (const Case& c : kLinearCases) {
      Trial trial(c, set);
      INFO(name_of(set) << ", n " << c.n << ", d " << c.d << ", o " << c.o);
      test(trial);
    }
  }
}

TEST_CASE("linear_forward is the sum of its formula") {
  for_all([](Trial& t) {
    for (const bool with_bias : {true, false}) {
      const std::vector<float> x = to_n16(t.x, t.x_shape);
      std::vector<float> y = not_written(filled_up(t.y_shape).count());
      linear_forward(t.context, {x.data(), filled_up(t.x_shape), Layout::n16},
                     {t.w.data(), t.w_shape},
                     with_bias ? ConstFloatView{t.b.data(), {t.is.o}} : ConstFloatView{},
                     {y.data(), filled_up(t.y_shape), Layout::n16});
      close(from_n16(y, t.y_shape),
            reference::linear_forward(t.is.n, t.is.d, t.is.o, t.x, t.w,
                                      with_bias ? t.b : std::vector<float>{}),
            kTolerance);
      for (const float value : y) REQUIRE(std::isfinite(value));
    }
  });
}

TEST_CASE("linear takes all axes but the first as features") {
  Context context{Device{}};
  const std::vector<float> x = random_values(16 * 12, 1), w = random_values(5 * 12, 2);
  std::vector<float> flat = not_written(16 * 5), image = not_written(16 * 5);
  linear_forward(context, {x.data(), {16, 12}, Layout::n16}, {w.data(), {5, 12}}, {},
                 {flat.data(), {16, 5}, Layout::n16});
  linear_forward(context, {x.data(), {16, 3, 2, 2}, Layout::n16}, {w.data(), {5, 12}}, {},
                 {image.data(), {16, 5}, Layout::n16});
  REQUIRE(std::isfinite(flat[0]));
  REQUIRE(flat == image);
}

TEST_CASE("linear_backward_data is the transpose of forward") {
  for_all([](Trial& t) {
    const std::vector<float> dy = to_n16(t.dy, t.y_shape);
    std::vector<float> dx = not_written(filled_up(t.x_shape).count());
    linear_backward_data(t.context, {dy.data(), filled_up(t.y_shape), Layout::n16},
                         {t.w.data(), t.w_shape}, {dx.data(), filled_up(t.x_shape), Layout::n16});
    const std::vector<float> canonical = from_n16(dx, t.x_shape);
    close(canonical, reference::linear_backward_data(t.is.n, t.is.d, t.is.o, t.dy, t.w),
          kTolerance);
    // A place without a sample has no gradient.
    REQUIRE(dx == to_n16(canonical, t.x_shape));
  });
}

TEST_CASE("linear_backward_parameters sums over samples, fresh or onto what is there") {
  for_all([](Trial& t) {
    // Places beyond the batch hold something in x: their dy of 0 must keep it out.
    const std::vector<float> x = to_n16(t.x, t.x_shape, 7.0F);
    const std::vector<float> dy = to_n16(t.dy, t.y_shape);
    std::vector<double> dw_expected =
        reference::linear_weight_gradient(t.is.n, t.is.d, t.is.o, t.x, t.dy);
    std::vector<double> db_expected = reference::bias_gradient(t.is.n, t.is.o, 1, t.dy);
    std::vector<float> dw = not_written(t.w_shape.count());
    std::vector<float> db = not_written(t.is.o);
    const auto run = [&](bool with_bias, bool accumulate) {
      linear_backward_parameters(
          t.context, {x.data(), filled_up(t.x_shape), Layout::n16},
          {dy.data(), filled_up(t.y_shape), Layout::n16}, {dw.data(), t.w_shape},
          with_bias ? FloatView{db.data(), {t.is.o}} : FloatView{}, accumulate);
    };
    run(false, false);
    close(dw, dw_expected, kTolerance);
    REQUIRE(std::isnan(db[0]));
    dw = not_written(t.w_shape.count());
    run(true, false);
    close(dw, dw_expected, kTolerance);
    close(db, db_expected, kTolerance);

    dw = random_values(t.w_shape.count(), 5);
    db = random_values(t.is.o, 6);
    for (std::size_t i = 0; i < dw.size(); ++i) dw_expected[i] += dw[i];
    for (std::size_t i = 0; i < db.size(); ++i) db_expected[i] += db[i];
    run(true, true);
    close(dw, dw_expected, kTolerance);
    close(db, db_expected, kTolerance);
  });
}

TEST_CASE("linear refuses what does not fit, and says which argument of which operation") {
  Context context{Device{}};
  std::vector<float> memory(16 * 64);
  const FloatView x{memory.data(), {16, 8}, Layout::n16}, w{memory.data(), {4, 8}},
      b{memory.data(), {4}}, y{memory.data(), {16, 4}, Layout::n16};
  const auto says = [&](FloatView x_in, FloatView w_in, FloatView b_in, FloatView y_in) {
    return message_of<ShapeError>([&] { linear_forward(context, x_in, w_in, b_in, y_in); });
  };
  CHECK(
      contains(says({memory.data(), {16, 8}}, w, b, y), "linear_forward: x has layout canonical"));
  CHECK(
      contains(says(x, w, b, {memory.data(), {16, 4}}), "linear_forward: y has layout canonical"));
  CHECK(contains(says({memory.data(), {8, 8}, Layout::n16}, w, b, y), "multiple of 16"));
  CHECK(contains(says(x, {memory.data(), {4, 9}}, b, y), "w is (4, 9); it must be (4, 8)"));
  CHECK(contains(says(x, {memory.data(), {4, 2, 4}}, b, y), "(O, D)"));
  CHECK(contains(says(x, w, {memory.data(), {3}}, y), "b is (3); it must be (4)"));
  CHECK(contains(says(x, w, b, {memory.data(), {16, 5}, Layout::n16}),
                 "y is (16, 5); it must be (16, 4)"));
  CHECK(contains(message_of<ShapeError>([&] {
                   linear_backward_data(context, {memory.data(), {32, 4}, Layout::n16}, w, x);
                 }),
                 "linear_backward_data: dy is (32, 4); it must be (16, 4)"));
  CHECK(contains(message_of<ShapeError>([&] {
                   linear_backward_parameters(context, x, y, {memory.data(), {5, 8}}, b, false);
                 }),
                 "linear_backward_parameters: dy is (16, 4); it must be (16, 5)"));
}

}  // namespace
}  // namespace lockstep
