// Convolution + ReLU + pooling in one on every instruction set, against the operations that it
// stands for.
#include "lockstep/kernels/fused.h"

#include <cstring>

#include "lockstep/kernels/conv.h"
#include "lockstep/kernels/pool.h"

#include "kernels/fused_cases.h"
#include "support/throws.h"

namespace lockstep {
namespace {

using namespace test;

/// The cases of both backends, and those beyond CUDA's limits: channels in several chunks with a
/// smaller last one, many outputs, input rows larger than the first-level cache.
std::vector<ConvPoolCase> cases() {
  std::vector<ConvPoolCase> all = conv_pool_cases();
  all.push_back({2, 20, 9, 8, 33, square(3, 1), side_by_side(2)});
  all.push_back({3, 37, 7, 7, 7, square(5, 2), side_by_side(2)});
  all.push_back({2, 11, 8, 6, 10, square(5, 1), side_by_side(3)});
  all.push_back({1, 64, 6, 40, 5, square(3, 0), side_by_side(2)});
  Window uneven = square(3, 1);
  uneven.pad_top = 2;
  uneven.pad_left = 0;
  all.push_back({33, 20, 8, 9, 6, uneven, side_by_side(2)});
  all.push_back({35, 9, 8, 10, 7, square(3, 0), side_by_side(2)});
  all.push_back({18, 13, 7, 9, 9, square(5, 2), side_by_side(2)});
  return all;
}

/// A trial's tensors in n16. Places without a sample have values of their own in x and gradients of
/// 0, as the loss leaves them.
struct OnCpu {
  const ConvPoolTrial& t;
  Context context;
  Shape x_shape, y_shape;
  std::vector<float> x, y, dy;
  std::vector<std::uint8_t> argmax;

  OnCpu(const ConvPoolTrial& trial, CpuSet set)
      : t(trial),
        context(Device{}, set),
        x_shape(filled_up(t.x_shape)),
        y_shape(filled_up(t.y_shape)),
        x(to_n16(t.x, t.x_shape, 7.0F)),
        y(to_n16(t.pooled.y, t.y_shape)),
        dy(to_n16(t.dy, t.y_shape)),
        argmax(to_n16(t.pooled.argmax, t.y_shape)) {
    context.reserve_workspace(
        conv_pool_workspace_bytes(context, t.is.conv, t.is.pool, x_shape, t.w_shape, 1));
    std::memset(context.workspace(), 0xFF,
                context.workspace_bytes());  // NaN, should anything read what it never wrote
  }
  void forward(const std::vector<float>* bias, std::vector<float>& out,
               std::vector<std::uint8_t>* places) {
    out = not_written(y_shape.count());
    if (places != nullptr) places->assign(static_cast<std::size_t>(y_shape.count()), 0xFF);
    conv_pool_forward(context, t.is.conv, t.is.pool, t.relu, {x.data(), x_shape, Layout::n16},
                      {t.w.data(), t.w_shape}, {bias != nullptr ? bias->data() : nullptr, {t.is.k}},
                      {out.data(), y_shape, Layout::n16},
                      {places != nullptr ? places->data() : nullptr, y_shape, Layout::n16});
    out = from_n16(out, t.y_shape);
    if (places != nullptr) *places = from_n16(*places, t.y_shape);
  }
  void backward(float* dw, float* db, bool accumulate, float* dx) {
    conv_pool_backward(context, t.is.conv, t.is.pool, t.relu, {x.data(), x_shape, Layout::n16},
                       {t.w.data(), t.w_shape}, {y.data(), y_shape, Layout::n16},
                       {argmax.data(), y_shape, Layout::n16}, {dy.data(), y_shape, Layout::n16},
                       {dw, t.w_shape}, {db, {t.is.k}}, accumulate, {dx, x_shape, Layout::n16}, 1,
                       0);
  }
};

std::vector<float> doubled(std::vector<float> values) {
  for (float& value : values) value *= 2;
  return values;
}

template <class Test>
void for_all(Test test) {
  for (const CpuSet set : supported_cpu_sets()) {
    for (const ConvPoolCase& c : cases()) {
      for (const bool relu : {true, false}) {
        const ConvPoolTrial t(c, relu);
        INFO(name_of(set) << ", x " << t.x_shape << ", w " << t.w_shape << ", y " << t.y_shape
                          << ", relu " << relu);
        OnCpu cpu(t, set);
        REQUIRE(conv_pool_is_fused(cpu.context, c.conv, c.pool, cpu.x_shape, t.w_shape));
        test(cpu);
      }
    }
  }
}

TEST_CASE("on a CPU conv_pool_forward is convolution, ReLU and pooling, ties included") {
  for_all([](OnCpu& cpu) {
    std::vector<float> y;
    std::vector<std::uint8_t> argmax;
    cpu.forward(&cpu.t.b, y, &argmax);
    require_alike(y, cpu.t.pooled.y);
    REQUIRE(argmax == cpu.t.pooled.argmax);
    cpu.forward(nullptr, y, nullptr);
    require_alike(y, cpu.t.pool({}).y);
  });
}

TEST_CASE("on a CPU conv_pool_backward is the gradient of the three, fresh or onto what is there") {
  for_all([](OnCpu& cpu) {
    const ConvPoolTrial& t = cpu.t;
    const std::vector<float> dz = t.conv_gradient();
    const std::vector<float> dw_expected =
        rounded(reference::conv_weight_gradient(t.extents(), t.is.conv, t.x, dz));
    const std::vector<float> db_expected =
        rounded(reference::bias_gradient(t.is.n, t.is.k, t.conv_h() * t.conv_w(), dz));
    const std::vector<float> dx_expected =
        rounded(reference::conv_backward_data(t.extents(), t.is.conv, dz, t.w));
    std::vector<float> dw = not_written(t.w_shape.count()), db = not_written(t.is.k);
    cpu.backward(dw.data(), nullptr, false, nullptr);
    require_alike(dw, dw_expected);
    // Without dx, few channels go another way.
    cpu.backward(dw.data(), db.data(), false, nullptr);
    require_alike(db, db_expected);
    cpu.backward(dw.data(), db.data(), true, nullptr);
    require_alike(dw, doubled(dw_expected));
    require_alike(db, doubled(db_expected));
    dw = not_written(t.w_shape.count());
    db = not_written(t.is.k);
    std::vector<float> dx = not_written(cpu.x_shape.count());
    cpu.backward(dw.data(), db.data(), false, dx.data());
    require_alike(dw, dw_expected);
    require_alike(db, db_expected);
    require_alike(from_n16(dx, t.x_shape), dx_expected);
    cpu.backward(dw.data(), db.data(), true, dx.data());
    require_alike(dw, doubled(dw_expected));
    require_alike(db, doubled(db_expected));
    require_alike(from_n16(dx, t.x_shape), dx_expected);
    const auto features = static_cast<std::size_t>(cpu.x_shape.without_first().count());
    for (std::size_t i = 0; i < dx.size(); ++i) {
      const auto sample = static_cast<std::int64_t>(i / kN16 / features * kN16 + i % kN16);
      if (sample >= t.is.n) REQUIRE(dx[i] == 0);  // places without a sample have no gradient
    }
  });
}

TEST_CASE("on a CPU conv_pool sums random values as the reference does") {
  for (const CpuSet set : supported_cpu_sets()) {
    for (const ConvPoolCase& c : cases()) {
      ConvPoolTrial t(c, true, random_values(c.n * c.c * c.h * c.w, 1),
                      random_values(c.k * c.c * c.conv.kernel_h * c.conv.kernel_w, 2));
      INFO(name_of(set) << ", x " << t.x_shape << ", w " << t.w_shape);
      OnCpu cpu(t, set);
      std::vector<float> y, dw = not_written(t.w_shape.count()),
                            dx = not_written(cpu.x_shape.count());
      cpu.forward(&t.b, y, nullptr);
      close(y, {t.pooled.y.begin(), t.pooled.y.end()}, 1e-5);
      cpu.backward(dw.data(), nullptr, false, dx.data());
      const std::vector<float> dz = t.conv_gradient();
      close(dw, reference::conv_weight_gradient(t.extents(), t.is.conv, t.x, dz), 1e-5);
      close(from_n16(dx, t.x_shape), reference::conv_backward_data(t.extents(), t.is.conv, dz, t.w),
            1e-5);
    }
  }
}

TEST_CASE("on a CPU conv_pool lets NaN and infinity through") {
  for (const CpuSet set : supported_cpu_sets()) {
    for (const std::size_t number : {0, 1}) {
      const ConvPoolCase c = conv_pool_cases()[number];
      std::vector<float> x = whole_values(c.n * c.c * c.h * c.w, 1);
      x[100] = std::numeric_limits<float>::quiet_NaN();
      x[2000] = std::numeric_limits<float>::infinity();
      const ConvPoolTrial t(c, false, x, whole_values(c.k * c.c * 9, 2));
      std::vector<float> y;
      std::vector<std::uint8_t> argmax;
      OnCpu(t, set).forward(&t.b, y, &argmax);
      if (c.c == 1) {
        require_alike(y, t.pooled.y);
        REQUIRE(argmax == t.pooled.argmax);
        continue;
      }
      // Winograd's sums: none that is not finite gets lost, and no other changes.
      std::int64_t changed = 0;
      for (std::size_t i = 0; i < y.size(); ++i) {
        if (!std::isfinite(t.pooled.y[i])) REQUIRE_FALSE(std::isfinite(y[i]));
        if (std::isfinite(y[i])) REQUIRE(y[i] == t.pooled.y[i]);
        changed += std::isfinite(y[i]) ? 0 : 1;
      }
      REQUIRE(changed > 0);
      REQUIRE(changed <= 2 * 4 * c.k);  // a place of x lies in at most four patches
    }
  }
}

TEST_CASE("on a CPU conv_pool_backward passes the gradient of a NaN on, as relu.h says") {
  for (const CpuSet set : supported_cpu_sets()) {
    for (const std::size_t number : {0, 1}) {
      const ConvPoolCase c = conv_pool_cases()[number];
      ConvPoolTrial with_nan(c, true);
      with_nan.pooled.y[5] = std::numeric_limits<float>::quiet_NaN();
      with_nan.dy[5] = 2;
      std::vector<float> db = not_written(c.k), dw = not_written(c.k * c.c * 9);
      OnCpu(with_nan, set).backward(dw.data(), db.data(), false, nullptr);
      require_alike(
          db, rounded(reference::bias_gradient(c.n, c.k, with_nan.conv_h() * with_nan.conv_w(),
                                               with_nan.conv_gradient())));
    }
  }
}

TEST_CASE("conv_pool on a CPU knows its limits, and refuses what is beyond") {
  Context context(Device{});
  const Window conv = square(3, 1), pool = side_by_side(2);
  const auto fused = [&](const Window& a, const Window& b, const Shape& x, const Shape& w) {
    return conv_pool_is_fused(context, a, b, x, w);
  };
  CHECK(fused(conv, pool, {16, 100, 28, 28}, {200, 100, 3, 3}));
  // Places of an image, with its border, and windows of a sample are 32-bit numbers.
  CHECK(fused(conv, pool, {16, 1, 11583, 11583}, {1, 1, 3, 3}));
  CHECK_FALSE(fused(conv, pool, {16, 1, 11587, 11587}, {1, 1, 3, 3}));
  CHECK_FALSE(fused(conv, pool, {16, 1, 8000, 8000}, {135, 1, 3, 3}));
  CHECK_FALSE(fused(square(4, 1), pool, {16, 1, 28, 28}, {8, 1, 4, 4}));
  CHECK_FALSE(fused(square(5, 0), pool, {16, 1, 4, 28}, {8, 1, 5, 5}));
  CHECK_FALSE(fused(conv, side_by_side(4), {16, 1, 28, 28}, {8, 1, 3, 3}));
  CHECK_FALSE(fused(conv, pool, {16, 2, 28, 28}, {8, 1, 3, 3}));
  Window overlapping = pool;
  overlapping.stride_w = 1;
  CHECK_FALSE(fused(conv, overlapping, {16, 1, 28, 28}, {8, 1, 3, 3}));
  Window strided = conv;
  strided.stride_h = 2;
  CHECK_FALSE(fused(strided, pool, {16, 1, 28, 28}, {8, 1, 3, 3}));

  std::vector<float> values(4096);
  const auto forward = [&](const Window& window, const Shape& out) {
    conv_pool_forward(context, window, pool, true, {values.data(), {16, 1, 4, 4}, Layout::n16},
                      {values.data(), {1, 1, window.kernel_h, window.kernel_w}}, {},
                      {values.data(), out, Layout::n16}, {});
  };
  CHECK(contains(message_of<ShapeError>([&] {
                   forward(square(4, 1), {16, 1, 1, 1});
                 }),
                 "conv_pool_is_fused"));
  CHECK_THROWS_AS(forward(conv, {16, 1, 2, 3}), ShapeError);
  CHECK(contains(message_of<UsageError>([&] {
                   forward(conv, {16, 1, 2, 2});
                 }),
                 "conv_pool_forward: the workspace has 0 bytes; reserve "));
  CHECK(contains(message_of<UsageError>([&] {
                   static_cast<void>(conv_pool_workspace_bytes(context, conv, pool, {16, 1, 4, 4},
                                                               {1, 1, 3, 3}, 2));
                 }),
                 "2 slices of a batch; on a CPU there is one"));
  CHECK(contains(message_of<UsageError>([&] {
                   linear_backward(context, {values.data(), {16, 4}, Layout::n16},
                                   {values.data(), {2, 4}}, {values.data(), {16, 2}, Layout::n16},
                                   {values.data(), {2, 4}}, {}, false, {}, 1, 0);
                 }),
                 "linear_backward: there is no fused kernel for cpu"));
}

}  // namespace
}  // namespace lockstep
