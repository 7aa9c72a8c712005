// Telling where weights differ.
#include "apps/weights_compare.h"

#include <cmath>
#include <limits>

#include "lockstep/layers/zoo.h"

#include "support/catch.h"

namespace lockstep::apps {

namespace {

Model model() {
  return Model(zoo::mlp(), {1, 28, 28}, 3);
}

Model changed(const std::string& name, std::size_t index, float value) {
  Model other = model();
  Tensor tensor = other.parameter(name);
  tensor.values()[index] = value;
  other.set_parameter(name, tensor);
  return other;
}

}  // namespace

TEST_CASE("weights: equal models have no difference", "[apps]") {
  CHECK_FALSE(first_difference(model(), model()).has_value());
}

TEST_CASE("weights: one unit in the last place is found and counted", "[apps]") {
  const std::string name = model().layout().parameters().back().name;
  const float value = model().parameter(name).values()[4];
  const auto difference = first_difference(
      model(), changed(name, 4, std::nextafter(value, std::numeric_limits<float>::infinity())));
  REQUIRE(difference.has_value());
  CHECK(difference->tensor == name);
  CHECK(difference->index == 4);
  CHECK(difference->count == 1);
  CHECK(difference->ulps == 1);
}

TEST_CASE("weights: distances cross zero, and zeros of either sign differ in bits", "[apps]") {
  const std::string name = model().layout().parameters().front().name;
  const float smallest = std::numeric_limits<float>::denorm_min();
  CHECK(first_difference(changed(name, 0, smallest), changed(name, 0, -smallest))->ulps == 2);
  const auto zeros = first_difference(changed(name, 0, 0.0F), changed(name, 0, -0.0F));
  REQUIRE(zeros.has_value());
  CHECK(zeros->ulps == 0);
}

}  // namespace lockstep::apps
