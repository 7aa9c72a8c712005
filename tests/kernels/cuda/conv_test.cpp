// Convolution on CUDA against the double-precision reference: by the operation, which is cuDNN's in
// a build that has it, and by our plain kernels, which take its place in a build that has not.
#include "lockstep/kernels/conv.h"

#include <cstdlib>

#include "lockstep/kernels/cuda/conv_products.h"

#include "kernels/conv_cases.h"
#include "kernels/n16.h"
#include "support/cuda_device.h"
#include "support/throws.h"

namespace lockstep {
namespace {

using namespace test;

/// One case with its values.
struct Trial {
  ConvCase is;
  Shape x_shape, w_shape, y_shape;
  std::vector<float> x, w, b, dy;

  explicit Trial(const ConvCase& the_case)
      : is(the_case),
        x_shape{is.e.n, is.e.c, is.e.h, is.e.w},
        w_shape{is.e.k, is.e.c, is.window.kernel_h, is.window.kernel_w},
        y_shape{is.e.n, is.e.k, is.window.output_h(is.e.h), is.window.output_w(is.e.w)},
        x(random_values(x_shape.count(), 1)),
        w(random_values(w_shape.count(), 2)),
        b(random_values(is.e.k, 3)),
        dy(random_values(y_shape.count(), 4)) {}
};

/// Makes room for a trial, and lets the workspace hold NaN, should anything read what it never
/// wrote.
void reserve(Context& context, const Trial& t) {
  context.reserve_workspace(conv2d_workspace_bytes(context, t.is.window, t.x_shape, t.w_shape));
  const std::vector<unsigned char> ones(context.workspace_bytes(), 0xFF);
  context.copy_to_device(context.workspace(), ones.data(), ones.size());
  context.synchronize();
}

/// With every thread of a block a thread of ThreadSanitizer's, a block for each of thousands of
/// weights takes minutes and shows what two hundred show.
bool is_for(const Trial& t) {
  return std::getenv("CUSIM_RACECHECK") == nullptr || t.w_shape.count() <= 200;
}

template <class Test>
void for_all(Test test) {
  Gpu gpu;
  for (const ConvCase& c : conv_cases()) {
    const Trial t(c);
    if (!is_for(t)) continue;
    INFO("x " << t.x_shape << ", w " << t.w_shape << ", y " << t.y_shape);
    reserve(gpu.context, t);
    test(gpu.context, t);
  }
}

TEST_CASE("conv2d_forward on CUDA is the sum of its formula") {
  for_all([](Context& context, const Trial& t) {
    const DeviceArray<float> x(context, t.x), w(context, t.w), b(context, t.b);
    for (const bool with_bias : {true, false}) {
      const DeviceArray<float> y(context, t.y_shape.count());
      conv2d_forward(context, t.is.window, x.view(t.x_shape), w.view(t.w_shape),
                     with_bias ? b.view({t.is.e.k}) : FloatView{}, y.view(t.y_shape));
      close(y.download(),
            reference::conv_forward(t.is.e, t.is.window, t.x, t.w,
                                    with_bias ? t.b : std::vector<float>{}),
            kConvTolerance);
    }
    const DeviceArray<float> plain(context, t.y_shape.count());
    cuda::plain::conv_forward(context, t.is.window, x.view(t.x_shape), w.view(t.w_shape),
                              plain.view(t.y_shape));
    close(plain.download(), reference::conv_forward(t.is.e, t.is.window, t.x, t.w, {}),
          kConvTolerance);
  });
}

TEST_CASE("conv2d_backward_data on CUDA is the transpose of forward") {
  for_all([](Context& context, const Trial& t) {
    const std::vector<double> expected =
        reference::conv_backward_data(t.is.e, t.is.window, t.dy, t.w);
    const DeviceArray<float> dy(context, t.dy), w(context, t.w), dx(context, t.x_shape.count()),
        plain(context, t.x_shape.count());
    conv2d_backward_data(context, t.is.window, dy.view(t.y_shape), w.view(t.w_shape),
                         dx.view(t.x_shape));
    close(dx.download(), expected, kConvTolerance);
    cuda::plain::conv_backward_data(context, t.is.window, dy.view(t.y_shape), w.view(t.w_shape),
                                    plain.view(t.x_shape));
    close(plain.download(), expected, kConvTolerance);
  });
}

TEST_CASE("conv2d_backward_parameters on CUDA sums, fresh or onto what is there") {
  for_all([](Context& context, const Trial& t) {
    const DeviceArray<float> x(context, t.x), dy(context, t.dy);
    std::vector<double> dw_expected =
        reference::conv_weight_gradient(t.is.e, t.is.window, t.x, t.dy);
    std::vector<double> db_expected =
        reference::bias_gradient(t.is.e.n, t.is.e.k, t.y_shape[2] * t.y_shape[3], t.dy);
    DeviceArray<float> dw(context, t.w_shape.count()), db(context, t.is.e.k);
    const auto run = [&](bool with_bias, bool accumulate) {
      conv2d_backward_parameters(context, t.is.window, x.view(t.x_shape), dy.view(t.y_shape),
                                 dw.view(t.w_shape), with_bias ? db.view({t.is.e.k}) : FloatView{},
                                 accumulate);
    };
    const auto run_plain = [&](bool accumulate) {
      cuda::plain::conv_backward_weights(context, t.is.window, x.view(t.x_shape),
                                         dy.view(t.y_shape), dw.view(t.w_shape), accumulate);
    };
    run(false, false);
    close(dw.download(), dw_expected, kConvTolerance);
    REQUIRE(std::isnan(db.download()[0]));
    dw.upload(not_written(t.w_shape.count()));
    run(true, false);
    close(dw.download(), dw_expected, kConvTolerance);
    close(db.download(), db_expected, kConvTolerance);
    dw.upload(not_written(t.w_shape.count()));
    run_plain(false);
    close(dw.download(), dw_expected, kConvTolerance);

    const std::vector<float> dw_before = random_values(t.w_shape.count(), 5);
    const std::vector<float> db_before = random_values(t.is.e.k, 6);
    for (std::size_t i = 0; i < dw_before.size(); ++i) dw_expected[i] += dw_before[i];
    for (std::size_t i = 0; i < db_before.size(); ++i) db_expected[i] += db_before[i];
    dw.upload(dw_before);
    db.upload(db_before);
    run(true, true);
    close(dw.download(), dw_expected, kConvTolerance);
    close(db.download(), db_expected, kConvTolerance);
    dw.upload(dw_before);
    run_plain(true);
    close(dw.download(), dw_expected, kConvTolerance);
  });
}

TEST_CASE("conv2d on CUDA wants the workspace that it asked for, and the canonical layout") {
  Gpu gpu;
  // A border only below and right: x is copied with it into the workspace.
  const Window window = same_window(6, 6, 2, 2, 1, 1);
  const Shape x_shape{3, 2, 6, 6}, w_shape{4, 2, 2, 2}, y_shape{3, 4, 6, 6};
  const DeviceArray<float> x(gpu.context, x_shape.count()), w(gpu.context, w_shape.count()),
      y(gpu.context, y_shape.count());
  const auto forward = [&](Layout layout) {
    conv2d_forward(gpu.context, window, {x.data(), x_shape, layout}, w.view(w_shape), {},
                   y.view(y_shape));
  };
  const std::size_t bytes = conv2d_workspace_bytes(gpu.context, window, x_shape, w_shape);
  if (bytes > 0) {
    CHECK(contains(message_of<UsageError>([&] { forward(Layout::canonical); }),
                   "conv2d_forward: the workspace has 0 bytes"));
  }
  gpu.context.reserve_workspace(bytes);
  CHECK_NOTHROW(forward(Layout::canonical));
  CHECK(contains(message_of<ShapeError>([&] { forward(Layout::n16); }),
                 "conv2d_forward: x has layout n16; on cuda:0 it must be canonical"));
  gpu.context.synchronize();
}

}  // namespace
}  // namespace lockstep
