// Models in host memory: their parameters and predictions.
#include "lockstep/layers/model.h"

#include "lockstep/kernels/convert.h"
#include "lockstep/layers/zoo.h"

#include "layers/rig.h"
#include "support/catch.h"
#include "support/throws.h"

using namespace lockstep;
using lockstep::test::contains;
using lockstep::test::message_of;

namespace {

Tensor images(std::int64_t count) {
  const Shape shape{count, 1, 28, 28};
  return {shape, test::values(4, shape.count())};
}

}  // namespace

TEST_CASE("parameters are read and replaced by name", "[layers]") {
  Model model(zoo::article(), {1, 28, 28}, 3);
  Tensor bias = model.parameter("conv_1.bias");
  CHECK(bias.shape() == Shape{8});
  for (int i = 0; i < 8; ++i) bias.data()[i] = static_cast<float>(i);
  const Model before = model;
  model.set_parameter("conv_1.bias", bias);
  CHECK(model.parameter("conv_1.bias").values() == bias.values());
  CHECK(before.parameter("conv_1.bias").values() != bias.values());
  CHECK(model.parameter("conv_1.weight").values() == before.parameter("conv_1.weight").values());
  CHECK(model.parameter("conv_2.weight").values() == before.parameter("conv_2.weight").values());
}

TEST_CASE("a parameter that there is not, or of another shape, is refused", "[layers]") {
  Model model(zoo::article(), {1, 28, 28});
  const std::string text = message_of<UsageError>([&] { (void)model.parameter("conv_3.weight"); });
  CHECK(contains(text, "conv_3.weight"));
  CHECK(contains(text, "conv_1.weight, conv_1.bias, conv_2.weight"));
  const std::string shape = message_of<ShapeError>([&] {
    model.set_parameter("fc.weight", Tensor(Shape{784, 10}));
  });
  CHECK(contains(shape, "fc.weight"));
  CHECK(contains(shape, "(10, 784)"));
  CHECK_THROWS_AS(Model(zoo::article(), {1, 20, 28}), ShapeError);
}

TEST_CASE("a seed is a model", "[layers]") {
  const Model model(zoo::article(), {1, 28, 28}, 3);
  CHECK(model.arena() == Model(zoo::article(), {1, 28, 28}, 3).arena());
  CHECK(model.arena() != Model(zoo::article(), {1, 28, 28}, 4).arena());
  CHECK(static_cast<std::int64_t>(model.arena().size()) == model.layout().size());
  CHECK(contains(model.describe(), "9098 parameters"));
}

TEST_CASE("predictions are the logits of a plan", "[layers]") {
  const std::int64_t count = 17;
  const Tensor samples = images(count);
  test::Rig rig(zoo::lenet5(), {1, 28, 28}, {.block = 32});
  Model model(zoo::lenet5(), {1, 28, 28});
  model.set_arena({rig.params.data(), rig.params.data() + rig.params.size()});
  convert_layout(rig.context, {samples.data(), samples.shape()}, rig.plan.input().x);
  rig.plan.forward(rig.context, nullptr);
  Tensor wanted(Shape{count, 10});
  convert_layout(rig.context, rig.plan.logits(), {wanted.data(), wanted.shape()});

  const Tensor logits = model.predict(samples);
  CHECK(logits.shape() == Shape{count, 10});
  CHECK(logits.values() == wanted.values());
}

TEST_CASE("predictions do not depend on the batch that a sample comes in", "[layers]") {
  const Model model(zoo::article(), {1, 28, 28}, 1);
  const Tensor many = model.predict(images(40));
  for (const std::int64_t count : {0, 1, 16, 17, 33}) {
    const Tensor few = model.predict(images(count));
    REQUIRE(few.shape() == Shape{count, 10});
    CHECK(few.values() ==
          std::vector<float>(many.values().begin(), many.values().begin() + count * 10));
  }
}

TEST_CASE("predicted classes are the first largest logits", "[layers]") {
  Model model({Linear{.in = 3, .out = 3, .bias = false}}, {3});
  model.set_parameter("fc.weight", Tensor(Shape{3, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1}));
  const Tensor samples(Shape{4, 3}, {1, 2, 3, 5, 5, 1, 0, 7, 7, -1, -2, -3});
  CHECK(model.predict_classes(samples) == std::vector<int>{2, 0, 1, 0});
  CHECK(model.predict_classes(Tensor(Shape{0, 3})).empty());
}

TEST_CASE("samples of another shape are refused", "[layers]") {
  const Model model(zoo::article(), {1, 28, 28});
  const std::string text = message_of<ShapeError>([&] {
    (void)model.predict(Tensor(Shape{2, 28, 28}));
  });
  CHECK(contains(text, "(2, 28, 28)"));
  CHECK(contains(text, "(1, 28, 28)"));
  CHECK_THROWS_AS(model.predict(Tensor(Shape{})), ShapeError);
}

TEST_CASE("an arena of another size is refused", "[layers]") {
  Model model(zoo::article(), {1, 28, 28});
  const std::vector<float> before = model.arena();
  std::vector<float> longer = before;
  longer.push_back(0);
  CHECK_THROWS_AS(model.set_arena(longer), ShapeError);
  CHECK_THROWS_AS(model.set_arena({}), ShapeError);
  CHECK(model.arena() == before);
}
