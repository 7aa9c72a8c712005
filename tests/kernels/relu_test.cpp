#include "lockstep/kernels/relu.h"

#include <cmath>

#include "kernels/relu_cases.h"
#include "support/throws.h"

using namespace lockstep;
using namespace lockstep::test;

TEST_CASE("relu keeps what is above 0 and lets NaN through", "[kernels]") {
  for_each_set([](Context& context) {
    for (const std::int64_t count : kReluCounts) {
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
    for (const std::int64_t count : kReluCounts) {
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
}
