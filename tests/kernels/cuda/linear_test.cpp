// The fully connected layer on CUDA against the double-precision reference.
#include "lockstep/kernels/linear.h"

#include "kernels/linear_cases.h"
#include "kernels/n16.h"
#include "kernels/reference.h"
#include "support/cuda_device.h"
#include "support/throws.h"

namespace lockstep {
namespace {

using namespace test;

/// One case with its values on the GPU; N, D and O differ, so that no two can be mistaken for each
/// other.
struct Trial {
  LinearCase is;
  Shape x_shape, w_shape, y_shape;
  std::vector<float> x, w, b, dy;

  explicit Trial(const LinearCase& the_case)
      : is(the_case),
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
  Gpu gpu;
  for (const LinearCase& c : kLinearCases) {
    INFO("n " << c.n << ", d " << c.d << ", o " << c.o);
    test(gpu.context, Trial(c));
  }
}

TEST_CASE("linear_forward on CUDA is the sum of its formula") {
  for_all([](Context& context, const Trial& t) {
    const DeviceArray<float> x(context, t.x), w(context, t.w), b(context, t.b);
    for (const bool with_bias : {true, false}) {
      const DeviceArray<float> y(context, t.y_shape.count());
      linear_forward(context, x.view(t.x_shape), w.view(t.w_shape),
                     with_bias ? b.view({t.is.o}) : FloatView{}, y.view(t.y_shape));
      close(y.download(),
            reference::linear_forward(t.is.n, t.is.d, t.is.o, t.x, t.w,
                                      with_bias ? t.b : std::vector<float>{}),
            kLinearTolerance);
    }
  });
}

TEST_CASE("linear_backward_data on CUDA is the transpose of forward") {
  for_all([](Context& context, const Trial& t) {
    const DeviceArray<float> dy(context, t.dy), w(context, t.w), dx(context, t.x_shape.count());
    linear_backward_data(context, dy.view(t.y_shape), w.view(t.w_shape), dx.view(t.x_shape));
    close(dx.download(), reference::linear_backward_data(t.is.n, t.is.d, t.is.o, t.dy, t.w),
          kLinearTolerance);
  });
}

TEST_CASE("linear_backward_parameters on CUDA sums, fresh or onto what is there") {
  for_all([](Context& context, const Trial& t) {
    const DeviceArray<float> x(context, t.x), dy(context, t.dy);
    std::vector<double> dw_expected =
        reference::linear_weight_gradient(t.is.n, t.is.d, t.is.o, t.x, t.dy);
    std::vector<double> db_expected = reference::bias_gradient(t.is.n, t.is.o, 1, t.dy);
    DeviceArray<float> dw(context, t.w_shape.count()), db(context, t.is.o);
    const auto run = [&](bool with_bias, bool accumulate) {
      linear_backward_parameters(context, x.view(t.x_shape), dy.view(t.y_shape), dw.view(t.w_shape),
                                 with_bias ? db.view({t.is.o}) : FloatView{}, accumulate);
    };
    run(false, false);
    close(dw.download(), dw_expected, kLinearTolerance);
    REQUIRE(std::isnan(db.download()[0]));
    dw.upload(not_written(t.w_shape.count()));
    run(true, false);
    close(dw.download(), dw_expected, kLinearTolerance);
    close(db.download(), db_expected, kLinearTolerance);

    const std::vector<float> dw_before = random_values(t.w_shape.count(), 5);
    const std::vector<float> db_before = random_values(t.is.o, 6);
    dw.upload(dw_before);
    db.upload(db_before);
    for (std::size_t i = 0; i < dw_before.size(); ++i) dw_expected[i] += dw_before[i];
    for (std::size_t i = 0; i < db_before.size(); ++i) db_expected[i] += db_before[i];
    run(true, true);
    close(dw.download(), dw_expected, kLinearTolerance);
    close(db.download(), db_expected, kLinearTolerance);
  });
}

TEST_CASE("linear on CUDA gives the same bits every time") {
  Gpu gpu;
  const Trial t({128, 784, 10});
  const DeviceArray<float> x(gpu.context, t.x), dy(gpu.context, t.dy);
  std::vector<float> first_dw, first_db;
  for (int round = 0; round < 3; ++round) {
    const DeviceArray<float> dw(gpu.context, t.w_shape.count()), db(gpu.context, t.is.o);
    linear_backward_parameters(gpu.context, x.view(t.x_shape), dy.view(t.y_shape),
                               dw.view(t.w_shape), db.view({t.is.o}), false);
    if (round == 0) first_dw = dw.download(), first_db = db.download();
    REQUIRE(std::isfinite(first_dw[0]));
    REQUIRE(dw.download() == first_dw);
    REQUIRE(db.download() == first_db);
  }
}

TEST_CASE("linear on CUDA refuses the layout of the CPU and empty batches") {
  Gpu gpu;
  const DeviceArray<float> x(gpu.context, 128), w(gpu.context, 32), y(gpu.context, 64);
  CHECK(contains(message_of<ShapeError>([&] {
                   linear_forward(gpu.context, {x.data(), {16, 8}, Layout::n16}, w.view({4, 8}), {},
                                  y.view({16, 4}));
                 }),
                 "linear_forward: x has layout n16; on cuda:0 it must be canonical"));
  CHECK(contains(message_of<ShapeError>([&] {
                   linear_forward(gpu.context, x.view({0, 8}), w.view({4, 8}), {}, y.view({0, 4}));
                 }),
                 "linear_forward: x is (0, 8); it must not be empty"));
}

}  // namespace
}  // namespace lockstep
