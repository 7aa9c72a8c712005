// Max-pooling on CUDA against the reference: values and winners exactly.
#include "lockstep/kernels/pool.h"

#include "kernels/pool_cases.h"
#include "support/cuda_device.h"
#include "support/throws.h"

namespace lockstep {
namespace {

using namespace test;

template <class Test>
void for_all(Test test) {
  Gpu gpu;
  for (const PoolCase& c : pool_cases()) {
    const Shape x_shape{c.e.n, c.e.c, c.e.h, c.e.w};
    const Shape y_shape{c.e.n, c.e.c, c.window.output_h(c.e.h), c.window.output_w(c.e.w)};
    INFO("x " << x_shape << ", kernel " << c.window.kernel_h << " x " << c.window.kernel_w << ", y "
              << y_shape);
    test(gpu.context, c, x_shape, y_shape);
  }
}

TEST_CASE("maxpool2d_forward on CUDA finds the first largest value, the first NaN before all") {
  for_all([](Context& context, const PoolCase& c, const Shape& x_shape, const Shape& y_shape) {
    const std::vector<float> values = awkward_values(x_shape.count());
    const reference::Pooled expected = reference::pool_forward(c.e, c.window, values);
    const DeviceArray<float> x(context, values), y(context, y_shape.count()),
        y_alone(context, y_shape.count());
    const DeviceArray<std::uint8_t> argmax(context, y_shape.count());
    maxpool2d_forward(context, c.window, x.view(x_shape), y.view(y_shape), argmax.view(y_shape));
    REQUIRE(same_bits(y.download(), expected.y));
    REQUIRE(argmax.download() == expected.argmax);
    maxpool2d_forward(context, c.window, x.view(x_shape), y_alone.view(y_shape), {});
    REQUIRE(same_bits(y_alone.download(), expected.y));
  });
}

TEST_CASE("maxpool2d_backward on CUDA gives each gradient to the winner") {
  for_all([](Context& context, const PoolCase& c, const Shape& x_shape, const Shape& y_shape) {
    const reference::Pooled pooled =
        reference::pool_forward(c.e, c.window, awkward_values(x_shape.count()));
    const std::vector<float> gradient = random_values(y_shape.count(), 2);
    const DeviceArray<float> dy(context, gradient), dx(context, x_shape.count());
    const DeviceArray<std::uint8_t> argmax(context, pooled.argmax);
    maxpool2d_backward(context, c.window, dy.view(y_shape), argmax.view(y_shape), dx.view(x_shape));
    // Sums of at most a few gradients: rounding alone stays far below this.
    close(dx.download(),
          reference::pool_backward(static_cast<std::size_t>(x_shape.count()), pooled, gradient),
          1e-6);
  });
}

TEST_CASE("maxpool2d_backward on CUDA keeps a gradient that is not finite at the winner") {
  Gpu gpu;
  const Window window{.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2};
  const DeviceArray<float> dy(gpu.context, std::vector<float>{kInfinity}), dx(gpu.context, 4);
  const DeviceArray<std::uint8_t> argmax(gpu.context, std::vector<std::uint8_t>{2});
  maxpool2d_backward(gpu.context, window, dy.view({1, 1, 1, 1}), argmax.view({1, 1, 1, 1}),
                     dx.view({1, 1, 2, 2}));
  REQUIRE(dx.download() == std::vector<float>{0, 0, kInfinity, 0});
}

TEST_CASE("maxpool2d on CUDA refuses the layout of the CPU") {
  Gpu gpu;
  const Window window{.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2};
  const DeviceArray<float> x(gpu.context, 64), y(gpu.context, 16);
  CHECK(contains(message_of<ShapeError>([&] {
                   maxpool2d_forward(gpu.context, window, {x.data(), {16, 1, 2, 2}, Layout::n16},
                                     y.view({16, 1, 1, 1}), {});
                 }),
                 "maxpool2d_forward: x has layout n16; on cuda:0 it must be canonical"));
}

}  // namespace
}  // namespace lockstep
