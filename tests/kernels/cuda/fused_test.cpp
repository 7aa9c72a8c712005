// The fused operations against the operations that they stand for, in double. Most values are small
// whole numbers: then every sum is exact, ties are common, and nothing may differ at all.
#include "lockstep/kernels/fused.h"

#include <cmath>

#include "kernels/fused_cases.h"
#include "kernels/samples.h"
#include "support/cuda_device.h"
#include "support/throws.h"

namespace lockstep {
namespace {

using namespace test;
using Floats = std::vector<float>;

/// Inputs and outputs of a backward call.
struct ConvPoolOnGpu {
  const ConvPoolTrial& t;
  Context& context;
  DeviceArray<float> x, w, y, dy;
  DeviceArray<std::uint8_t> argmax;

  ConvPoolOnGpu(Context& the_context, const ConvPoolTrial& trial)
      : t(trial),
        context(the_context),
        x(context, t.x),
        w(context, t.w),
        y(context, t.pooled.y),
        dy(context, t.dy),
        argmax(context, t.pooled.argmax) {}
  void backward(float* dw, float* db, bool accumulate, float* dx, int shards,
                std::int64_t stride) const {
    context.reserve_workspace(
        conv_pool_workspace_bytes(context, t.is.conv, t.is.pool, t.x_shape, t.w_shape, shards));
    conv_pool_backward(context, t.is.conv, t.is.pool, t.relu, x.view(t.x_shape), w.view(t.w_shape),
                       y.view(t.y_shape), argmax.view(t.y_shape), dy.view(t.y_shape),
                       {dw, t.w_shape}, {db, {t.is.k}}, accumulate, {dx, t.x_shape}, shards,
                       stride);
  }
};

template <class Test>
void for_all(Test test) {
  Gpu gpu;
  for (const ConvPoolCase& c : conv_pool_cases()) {
    for (const bool relu : {true, false}) {
      const ConvPoolTrial t(c, relu);
      INFO("x " << t.x_shape << ", w " << t.w_shape << ", y " << t.y_shape << ", relu " << relu);
      REQUIRE(conv_pool_is_fused(gpu.context, c.conv, c.pool, t.x_shape, t.w_shape));
      test(gpu.context, t);
    }
  }
}

TEST_CASE("conv_pool_forward is convolution, ReLU and pooling, ties included") {
  for_all([](Context& context, const ConvPoolTrial& t) {
    const DeviceArray<float> x(context, t.x), w(context, t.w), b(context, t.b),
        y(context, t.y_shape.count()), y_plain(context, t.y_shape.count());
    const DeviceArray<std::uint8_t> argmax(context, t.y_shape.count());
    conv_pool_forward(context, t.is.conv, t.is.pool, t.relu, x.view(t.x_shape), w.view(t.w_shape),
                      b.view({t.is.k}), y.view(t.y_shape), argmax.view(t.y_shape));
    require_alike(y.download(), t.pooled.y);
    REQUIRE(argmax.download() == t.pooled.argmax);
    conv_pool_forward(context, t.is.conv, t.is.pool, t.relu, x.view(t.x_shape), w.view(t.w_shape),
                      {}, y_plain.view(t.y_shape), {});
    require_alike(y_plain.download(), t.pool({}).y);
  });
}

TEST_CASE("conv_pool_forward lets NaN and infinity through") {
  Gpu gpu;
  const ConvPoolCase c = conv_pool_cases()[1];
  Floats x = whole_values(c.n * c.c * c.h * c.w, 1);
  x[100] = kNan;
  x[2000] = kInfinity;
  const ConvPoolTrial t(c, true, x, whole_values(c.k * c.c * 9, 2));
  const DeviceArray<float> in(gpu.context, t.x), w(gpu.context, t.w), b(gpu.context, t.b),
      y(gpu.context, t.y_shape.count());
  const DeviceArray<std::uint8_t> argmax(gpu.context, t.y_shape.count());
  conv_pool_forward(gpu.context, c.conv, c.pool, true, in.view(t.x_shape), w.view(t.w_shape),
                    b.view({c.k}), y.view(t.y_shape), argmax.view(t.y_shape));
  require_alike(y.download(), t.pooled.y);
  REQUIRE(argmax.download() == t.pooled.argmax);

  // Backward: a NaN output passes its gradient on, as relu.h says.
  const ConvPoolTrial finite(c, true);
  ConvPoolTrial with_nan = finite;
  with_nan.pooled.y[5] = kNan;
  with_nan.dy[5] = 2;
  const DeviceArray<float> db(gpu.context, c.k), dw(gpu.context, t.w_shape.count());
  ConvPoolOnGpu(gpu.context, with_nan).backward(dw.data(), db.data(), false, nullptr, 1, 0);
  const Floats expected = rounded(reference::bias_gradient(
      c.n, c.k, with_nan.conv_h() * with_nan.conv_w(), with_nan.conv_gradient()));
  require_alike(db.download(), expected);
}

TEST_CASE("conv_pool_backward is the gradient of the three, fresh or onto what is there") {
  for_all([](Context& context, const ConvPoolTrial& t) {
    const Floats dz = t.conv_gradient();
    Floats dw_expected = rounded(reference::conv_weight_gradient(t.extents(), t.is.conv, t.x, dz));
    Floats db_expected =
        rounded(reference::bias_gradient(t.is.n, t.is.k, t.conv_h() * t.conv_w(), dz));
    const Floats dx_expected =
        rounded(reference::conv_backward_data(t.extents(), t.is.conv, dz, t.w));
    const ConvPoolOnGpu gpu(context, t);
    const DeviceArray<float> dw(context, t.w_shape.count()), db(context, t.is.k),
        dx(context, t.x_shape.count());
    gpu.backward(dw.data(), nullptr, false, nullptr, 1, 0);
    require_alike(dw.download(), dw_expected);
    gpu.backward(dw.data(), db.data(), false, dx.data(), 1, 0);
    require_alike(dw.download(), dw_expected);
    require_alike(db.download(), db_expected);
    require_alike(dx.download(), dx_expected);
    gpu.backward(dw.data(), db.data(), true, dx.data(), 1, 0);
    for (float& value : dw_expected) value *= 2;
    for (float& value : db_expected) value *= 2;
    require_alike(dw.download(), dw_expected);
    require_alike(db.download(), db_expected);
    require_alike(dx.download(), dx_expected);
  });
}

/// Runs backward(dw, db, shards, first sample, samples, stride) over the whole batch as `shards`
/// slices in one call, and slice by slice, and requires the same bits and nothing beside them.
template <class Backward>
void check_slices(Context& context, std::int64_t weights, std::int64_t outputs, int shards,
                  Backward backward) {
  const std::int64_t stride = weights + outputs + 3;
  const DeviceArray<float> together(context, shards * stride);
  backward(together.data(), together.data() + weights, shards, 0, stride);
  Floats expected;
  for (int shard = 0; shard < shards; ++shard) {
    const DeviceArray<float> alone(context, stride);
    backward(alone.data(), alone.data() + weights, 1, shard, 0);
    const Floats values = alone.download();
    for (std::int64_t i = 0; i < stride; ++i) {
      REQUIRE(std::isnan(values[static_cast<std::size_t>(i)]) == (i >= weights + outputs));
    }
    expected.insert(expected.end(), values.begin(), values.end());
  }
  REQUIRE(same_bits(together.download(), expected));
}

TEST_CASE("a slice's gradients of conv_pool have the same bits alone and beside others") {
  Gpu gpu;
  for (const ConvPoolCase& base : {conv_pool_cases()[0], conv_pool_cases()[1]}) {
    ConvPoolCase c = base;
    c.n = 12;
    const ConvPoolTrial t(c, true, random_values(c.n * c.c * c.h * c.w, 1),
                          random_values(c.k * c.c * 9, 2));
    const std::int64_t samples = c.n / 4;
    check_slices(
        gpu.context, t.w_shape.count(), c.k, 4,
        [&](float* dw, float* db, int shards, std::int64_t first, std::int64_t stride) {
          // The part of the batch that the call is about.
          ConvPoolTrial part = t;
          if (shards == 1) {
            part.is.n = samples;
            part.x_shape = t.x_shape.without_first().with_first(samples);
            part.y_shape = t.y_shape.without_first().with_first(samples);
            const auto cut = [&](const auto& values) {
              const auto size = static_cast<std::int64_t>(values.size()) / 4;
              const auto begin = values.begin() + first * size;
              return std::decay_t<decltype(values)>(begin, begin + size);
            };
            part.x = cut(t.x);
            part.dy = cut(t.dy);
            part.pooled.y = cut(t.pooled.y);
            part.pooled.argmax = cut(t.pooled.argmax);
          }
          ConvPoolOnGpu(gpu.context, part).backward(dw, db, false, nullptr, shards, stride);
        });
  }
}

TEST_CASE("conv_pool_is_fused knows its limits, and the operations refuse what is beyond") {
  Gpu gpu;
  const Window conv = square(3, 1), pool = side_by_side(2);
  const auto fused = [&](const Window& a, const Window& b, const Shape& x, const Shape& w) {
    return conv_pool_is_fused(gpu.context, a, b, x, w);
  };
  CHECK(fused(conv, pool, {2, 16, 28, 28}, {32, 16, 3, 3}));
  CHECK_FALSE(fused(conv, pool, {2, 17, 28, 28}, {32, 17, 3, 3}));
  CHECK_FALSE(fused(conv, pool, {2, 16, 28, 28}, {33, 16, 3, 3}));
  CHECK_FALSE(fused(conv, pool, {2, 1, 200, 200}, {8, 1, 3, 3}));
  CHECK_FALSE(fused(conv, pool, {2, 1, 100000, 1}, {8, 1, 3, 3}));
  CHECK_FALSE(fused(square(4, 1), pool, {2, 1, 28, 28}, {8, 1, 4, 4}));
  CHECK_FALSE(fused(square(3, 3), pool, {2, 1, 28, 28}, {8, 1, 3, 3}));
  CHECK_FALSE(fused(square(5, 0), pool, {2, 1, 4, 28}, {8, 1, 5, 5}));
  CHECK_FALSE(fused(conv, side_by_side(4), {2, 1, 28, 28}, {8, 1, 3, 3}));
  Window overlapping = pool;
  overlapping.stride_w = 1;
  CHECK_FALSE(fused(conv, overlapping, {2, 1, 28, 28}, {8, 1, 3, 3}));
  Window strided = conv;
  strided.stride_h = 2;
  CHECK_FALSE(fused(strided, pool, {2, 1, 28, 28}, {8, 1, 3, 3}));

  const DeviceArray<float> x(gpu.context, 4096);
  const auto forward = [&](Context& context, const Shape& in, const Shape& w, const Shape& out) {
    conv_pool_forward(context, conv, pool, true, x.view(in), x.view(w), {}, x.view(out), {});
  };
  CHECK(contains(message_of<ShapeError>([&] {
                   forward(gpu.context, {1, 17, 4, 4}, {1, 17, 3, 3}, {1, 1, 2, 2});
                 }),
                 "conv_pool_is_fused"));
  CHECK_THROWS_AS(forward(gpu.context, {1, 1, 4, 4}, {1, 1, 3, 3}, {1, 1, 2, 3}), ShapeError);
  const DeviceArray<std::uint8_t> argmax(gpu.context, 16);
  const auto backward = [&](int shards) {
    conv_pool_backward(gpu.context, conv, pool, true, x.view({2, 1, 4, 4}), x.view({1, 1, 3, 3}),
                       x.view({2, 1, 2, 2}), argmax.view({2, 1, 2, 2}), x.view({2, 1, 2, 2}),
                       x.view({1, 1, 3, 3}), {}, false, {}, shards, 0);
  };
  CHECK(contains(message_of<UsageError>([&] { backward(2); }), "workspace"));
  CHECK_THROWS_AS(backward(3), ShapeError);
}

// --- the fully connected layer ---

struct LinearTrial {
  std::int64_t n, d, o;
  Floats x, w, b, dy;

  LinearTrial(std::int64_t samples, std::int64_t columns, std::int64_t outputs)
      : n(samples),
        d(columns),
        o(outputs),
        x(random_values(n * d, 1)),
        w(random_values(o * d, 2)),
        b(random_values(o, 3)),
        dy(random_values(n * o, 4)) {}
};

const std::vector<LinearTrial>& linear_trials() {
  static const std::vector<LinearTrial> trials = {{33, 784, 10}, {16, 128, 8},  {5, 3, 1},
                                                  {20, 130, 32}, {40, 257, 17}, {1, 1, 9}};
  return trials;
}

TEST_CASE("linear_loss is the layer and the loss after it") {
  Gpu gpu;
  for (const LinearTrial& t : linear_trials()) {
    for (const bool with_bias : {true, false}) {
      INFO("n " << t.n << ", d " << t.d << ", o " << t.o << ", bias " << with_bias);
      std::vector<std::int32_t> index(static_cast<std::size_t>(t.n)), classes(index.size());
      for (std::size_t n = 0; n < index.size(); ++n) {
        index[n] = n % 5 == 4 ? -1 : static_cast<std::int32_t>(n);
        classes[n] = static_cast<std::int32_t>(n) % static_cast<std::int32_t>(t.o);
      }
      StepState values;
      values.inverse_samples = 0.125F;
      Context& context = gpu.context;
      const DeviceValue<StepState> state(context, values);
      const DeviceArray<std::int32_t> on_index(context, index), on_classes(context, classes);
      const DeviceArray<float> x(context, t.x), w(context, t.w), b(context, t.b),
          logits(context, t.n * t.o), loss(context, t.n), correct(context, t.n),
          dlogits(context, t.n * t.o), loss_apart(context, t.n), correct_apart(context, t.n),
          dlogits_apart(context, t.n * t.o);
      const Targets targets{on_index.data(), on_classes.data(), nullptr};
      linear_loss(context, x.view({t.n, t.d}), w.view({t.o, t.d}),
                  with_bias ? b.view({t.o}) : FloatView{}, targets, state.data(),
                  logits.view({t.n, t.o}), loss.data(), correct.data(), dlogits.view({t.n, t.o}));
      close(logits.download(),
            reference::linear_forward(t.n, t.d, t.o, t.x, t.w, with_bias ? t.b : Floats{}), 1e-6);
      softmax_cross_entropy(context, logits.view({t.n, t.o}), targets, state.data(),
                            loss_apart.data(), correct_apart.data(),
                            dlogits_apart.view({t.n, t.o}));
      REQUIRE(same_bits(loss.download(), loss_apart.download()));
      REQUIRE(same_bits(correct.download(), correct_apart.download()));
      REQUIRE(same_bits(dlogits.download(), dlogits_apart.download()));
      const DeviceArray<float> loss_only(context, t.n);
      linear_loss(context, x.view({t.n, t.d}), w.view({t.o, t.d}),
                  with_bias ? b.view({t.o}) : FloatView{}, targets, nullptr,
                  logits.view({t.n, t.o}), loss_only.data(), correct.data(), {});
      REQUIRE(same_bits(loss_only.download(), loss.download()));
    }
  }
}

TEST_CASE("linear_backward is the gradient of the layer, fresh or onto what is there") {
  Gpu gpu;
  for (const LinearTrial& t : linear_trials()) {
    INFO("n " << t.n << ", d " << t.d << ", o " << t.o);
    Context& context = gpu.context;
    context.reserve_workspace(linear_backward_workspace_bytes({t.n, t.d}, t.o, 1));
    const DeviceArray<float> x(context, t.x), w(context, t.w), dy(context, t.dy),
        dw(context, t.o * t.d), db(context, t.o), dx(context, t.n * t.d);
    const auto backward = [&](float* bias, bool accumulate, float* data) {
      linear_backward(context, x.view({t.n, t.d}), w.view({t.o, t.d}), dy.view({t.n, t.o}),
                      dw.view({t.o, t.d}), {bias, {t.o}}, accumulate, {data, {t.n, t.d}}, 1, 0);
    };
    std::vector<double> dw_expected = reference::linear_weight_gradient(t.n, t.d, t.o, t.x, t.dy);
    std::vector<double> db_expected = reference::bias_gradient(t.n, t.o, 1, t.dy);
    backward(nullptr, false, nullptr);
    close(dw.download(), dw_expected, 2e-6);
    backward(db.data(), false, dx.data());
    close(dw.download(), dw_expected, 2e-6);
    close(db.download(), db_expected, 2e-6);
    close(dx.download(), reference::linear_backward_data(t.n, t.d, t.o, t.dy, t.w), 2e-6);
    backward(db.data(), true, dx.data());
    for (double& value : dw_expected) value *= 2;
    for (double& value : db_expected) value *= 2;
    close(dw.download(), dw_expected, 2e-6);
    close(db.download(), db_expected, 2e-6);
  }
}

TEST_CASE("a slice's gradients of the layer have the same bits alone and beside others") {
  Gpu gpu;
  const LinearTrial t(160, 300, 10);
  const std::int64_t samples = t.n / 4;
  Context& context = gpu.context;
  context.reserve_workspace(linear_backward_workspace_bytes({t.n, t.d}, t.o, 4));
  const DeviceArray<float> x(context, t.x), w(context, t.w), dy(context, t.dy);
  check_slices(context, t.o * t.d, t.o, 4,
               [&](float* dw, float* db, int shards, std::int64_t shard, std::int64_t stride) {
                 const std::int64_t first = shard * samples;
                 const std::int64_t n = shards == 1 ? samples : t.n;
                 linear_backward(context, {x.data() + first * t.d, {n, t.d}}, w.view({t.o, t.d}),
                                 {dy.data() + first * t.o, {n, t.o}}, {dw, {t.o, t.d}}, {db, {t.o}},
                                 false, {}, shards, stride);
               });
}

TEST_CASE("the fused fully connected layer refuses what it cannot do") {
  Gpu gpu;
  Context cpu(Device{});
  const DeviceArray<float> x(gpu.context, 4096);
  const auto backward = [&](Context& context, std::int64_t n, std::int64_t d, std::int64_t o,
                            int shards) {
    linear_backward(context, x.view({n, d}), x.view({o, d}), x.view({n, o}), x.view({o, d}), {},
                    false, {}, shards, 0);
  };
  CHECK_THROWS_AS(backward(gpu.context, 4, 8, 33, 1), ShapeError);
  CHECK_THROWS_AS(backward(gpu.context, 4, 8, 4, 3), ShapeError);
  CHECK(contains(message_of<UsageError>([&] { backward(gpu.context, 4, 8, 4, 1); }), "workspace"));
  CHECK(contains(message_of<UsageError>([&] { backward(cpu, 4, 8, 4, 1); }),
                 "linear_backward: there is no fused kernel for cpu"));
}

}  // namespace
}  // namespace lockstep
