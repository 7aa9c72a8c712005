#include "lockstep/kernels/relu.h"

#include <cmath>

#include "kernels/samples.h"
#include "support/throws.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

const std::vector<std::int64_t> kCounts = {1, 3, 4, 7, 8, 15, 16, 17, 33, 100};

std::vector<float> values_with_specials(std::int64_t count, std::uint32_t stream) {
  std::vector<float> values = random_values(count, stream);
  const float specials[] = {-0.0F, 0.0F, kNan, kInfinity, -kInfinity};
  for (std::size_t i = 0; i < values.size(); i += 3) values[i] = specials[i / 3 % 5];
  return values;
}

bool alike(float a, float b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

}  // namespace

TEST_CASE("relu keeps what is above 0 and lets NaN through", "[kernels]") {
  for_each_set([](Context& context) {
    for (const std::int64_t count : kCounts) {
      const std::vector<float> x = values_with_specials(count, 1);
      std::vector<float> y = not_written(count);
      relu_forward(context, {x.data(), {count}}, {y.data(), {count}});
      std::vector<float> in_place = x;
      relu_forward(context, {in_place.data(), {count}}, {in_place.data(), {count}});
      for (std::size_t i = 0; i < x.size(); ++i) {
        INFO("element " << i << " of " << count << ": " << x[i] << " gave " << y[i]);
        REQUIRE(alike(y[i], x[i] < 0 ? 0.0F : x[i]));
        REQUIRE((std::isnan(y[i]) || !std::signbit(y[i])));
      }
      REQUIRE(same_bits(in_place, y));
    }
  });
}

TEST_CASE("relu's gradient goes where the output is above 0 or NaN", "[kernels]") {
  for_each_set([](Context& context) {
    for (const std::int64_t count : kCounts) {
      std::vector<float> y = values_with_specials(count, 2);
      for (float& value : y) value = value < 0 ? 0.0F : value;
      const std::vector<float> dy = random_values(count, 3);
      std::vector<float> dx = not_written(count);
      relu_backward(context, {y.data(), {count}}, {dy.data(), {count}}, {dx.data(), {count}});
      std::vector<float> in_place = dy;
      relu_backward(context, {y.data(), {count}}, {in_place.data(), {count}},
                    {in_place.data(), {count}});
      for (std::size_t i = 0; i < y.size(); ++i) {
        INFO("element " << i << " of " << count << ": y is " << y[i]);
        REQUIRE(dx[i] == (y[i] > 0 || std::isnan(y[i]) ? dy[i] : 0.0F));
      }
      REQUIRE(same_bits(in_place, dx));
    }
  });
}

TEST_CASE("a relu gradient that was NaN at a closed place does not leak", "[kernels]") {
  for_each_set([](Context& context) {
    const std::vector<float> y(19, 0.0F);
    std::vector<float> dx = not_written(19);
    relu_backward(context, {y.data(), {19}}, {dx.data(), {19}}, {dx.data(), {19}});
    REQUIRE(dx == std::vector<float>(19, 0.0F));
  });
}

TEST_CASE("relu refuses tensors that differ", "[kernels]") {
  Context context(Device{});
  std::vector<float> x(64), y(64);
  const ConstFloatView input(x.data(), {16, 4});
  CHECK(contains(message_of<ShapeError>([&] {
                   relu_forward(context, input, {y.data(), {16, 3}});
                 }),
                 "relu_forward: x is (16, 4) and y is (16, 3)"));
  CHECK(contains(message_of<ShapeError>([&] {
                   relu_forward(context, input, {y.data(), {16, 4}, Layout::n16});
                 }),
                 "layout"));
  CHECK_THROWS_AS(relu_backward(context, input, {y.data(), {4, 16}}, {y.data(), {16, 4}}),
                  ShapeError);
  CHECK_THROWS_AS(relu_backward(context, input, {y.data(), {16, 4}}, {y.data(), {64}}), ShapeError);
  Context cuda(Device{DeviceKind::cuda, 0});
  CHECK_THROWS_AS(relu_forward(cuda, input, {y.data(), {16, 4}}), DeviceError);
}
