// What plans promise besides right gradients.
#include <cmath>

#include "lockstep/kernels/convert.h"
#include "lockstep/layers/zoo.h"

#include "layers/rig.h"
#include "support/catch.h"
#include "support/throws.h"

using namespace lockstep;
using lockstep::test::Batch;
using lockstep::test::contains;
using lockstep::test::make_batch;
using lockstep::test::message_of;
using lockstep::test::Rig;

namespace {

std::vector<float> logits_of(Rig& rig) {
  const Shape shape = rig.plan.logits().shape;
  std::vector<float> canonical(static_cast<std::size_t>(shape.count()));
  convert_layout(rig.context, rig.plan.logits(), {canonical.data(), shape});
  return canonical;
}

}  // namespace

TEST_CASE("a CPU plan rounds its block up to whole groups", "[layers]") {
  for (const auto& [asked, block] : {std::pair{1, 16}, {16, 16}, {17, 32}, {250, 256}}) {
    Rig rig(zoo::mlp(), {1, 28, 28}, {.block = asked});
    CHECK(rig.plan.block() == block);
    CHECK(rig.plan.input().x.shape == Shape{block, 1, 28, 28});
    CHECK(rig.plan.input().x.layout == Layout::n16);
    CHECK(rig.plan.logits().shape == Shape{block, 10});
  }
}

TEST_CASE("a forward plan gives losses and right predictions, and takes no backward", "[layers]") {
  const Batch batch = make_batch({1, 28, 28}, 20, 10);
  Rig training(zoo::lenet5(), batch.sample, {.block = 32, .training = true});
  Rig forward(zoo::lenet5(), batch.sample, {.block = 32});
  for (Rig* rig : {&training, &forward}) {
    rig->gather_block(batch, 0);
    rig->plan.forward(rig->context, &rig->state);
    rig->plan.loss(rig->context, &rig->state);
  }
  const std::vector<float> logits = logits_of(forward);
  CHECK(logits == logits_of(training));
  int right = 0;
  for (std::int64_t i = 0; i < 20; ++i) {
    CHECK(forward.plan.losses()[i] == training.plan.losses()[i]);
    const float* row = logits.data() + i * 10;
    const bool hit =
        std::max_element(row, row + 10) - row == batch.targets[static_cast<std::size_t>(i)];
    CHECK(forward.plan.correct()[i] == (hit ? 1.0F : 0.0F));
    right += hit ? 1 : 0;
  }
  CHECK(right < 20);
  CHECK(contains(message_of<UsageError>(
                     [&] { forward.plan.backward(forward.context, &forward.state, 0, true); }),
                 "training"));
}

TEST_CASE("a backward pass of a layer that there is not is refused", "[layers]") {
  Rig rig(zoo::mlp(), {1, 28, 28}, {.block = 16, .training = true});
  CHECK_THROWS_AS(rig.plan.backward(rig.context, &rig.state, -1, true), UsageError);
  CHECK_THROWS_AS(rig.plan.backward(rig.context, &rig.state, 4, true), UsageError);
}

TEST_CASE("dropout is the identity in evaluation, wherever it stands", "[layers]") {
  const Batch batch = make_batch({12}, 16, 4);
  const Linear first{.in = 12, .out = 8, .name = "a"};
  const Linear second{.in = 8, .out = 4, .name = "b"};
  Rig with({Dropout{}, first, Dropout{.rate = 0.9F}, second, Dropout{}}, batch.sample,
           {.block = 16});
  Rig without({first, second}, batch.sample, {.block = 16});
  // Initial values depend on the parameters' numbers, which are the same in both.
  for (Rig* rig : {&with, &without}) {
    rig->gather_block(batch, 0);
    rig->plan.forward(rig->context, &rig->state);
  }
  CHECK(logits_of(with) == logits_of(without));
}

TEST_CASE("dropout in training depends on seed and epoch", "[layers]") {
  const Batch batch = make_batch({12}, 16, 4);
  const auto train = [&](std::uint64_t seed, std::uint32_t epoch) {
    Rig rig({Dropout{}, Linear{.in = 12, .out = 4}}, batch.sample,
            {.block = 16, .training = true, .seed = seed});
    rig.state.epoch = epoch;
    rig.run(batch);
    return rig.gradients();
  };
  CHECK(train(1, 0) == train(1, 0));
  CHECK(train(1, 0) != train(2, 0));
  CHECK(train(1, 0) != train(1, 1));
}

TEST_CASE("a model without parameters has a loss and no backward pass", "[layers]") {
  const Batch batch = make_batch({4}, 16, 4);
  Rig rig({ReLU{}}, batch.sample, {.block = 16, .training = true});
  CHECK(std::isfinite(rig.run(batch)));
}

TEST_CASE("the same block twice gives the same bits", "[layers]") {
  const Batch batch = make_batch({1, 28, 28}, 16, 10);
  Rig rig(zoo::lenet5(), batch.sample, {.block = 16, .training = true});
  rig.run(batch);
  const std::vector<float> once = rig.gradients();
  rig.run(batch);
  CHECK(rig.gradients() == once);
}

TEST_CASE("padding in the gradient arena stays 0", "[layers]") {
  const Batch batch = make_batch({3}, 16, 5);
  Rig rig({Linear{.in = 3, .out = 5}}, batch.sample, {.block = 16, .training = true});
  rig.run(batch);
  std::vector<float> grads = rig.gradients();
  for (const Parameter& parameter : rig.layout.parameters()) {
    std::fill_n(grads.begin() + parameter.place.offset, parameter.place.count, 0.0F);
  }
  CHECK(grads == std::vector<float>(grads.size(), 0.0F));
}

TEST_CASE("a plan that cannot be says why", "[layers]") {
  const auto plan = [](const Sequential& model, const Shape& sample, const PlanOptions& options) {
    return [=] { (void)Rig(model, sample, options); };
  };
  CHECK_THROWS_AS(plan(zoo::mlp(), {1, 28, 28}, {.block = 0})(), UsageError);
  CHECK_THROWS_AS(plan(zoo::mlp(), {1, 27, 28}, {.block = 16})(), ShapeError);

  const std::string no_logits = message_of<ShapeError>(
      plan({Conv2d{.in = 1, .out = 2, .name = "only"}}, {1, 4, 4}, {.block = 16}));
  CHECK(no_logits.rfind("only: ", 0) == 0);
  CHECK(contains(no_logits, "(2, 4, 4)"));

  const std::string soft =
      message_of<ShapeError>(plan(zoo::mlp(), {1, 28, 28}, {.block = 16, .soft_classes = 7}));
  CHECK(soft.rfind("fc_2: ", 0) == 0);
  CHECK(contains(soft, "10"));
  CHECK(contains(soft, "7"));
}

TEST_CASE("a plan wants the layout and the arenas of its model", "[layers]") {
  Context context{Device{}};
  const Sequential model = zoo::mlp();
  const ParameterLayout layout(model);
  const Arena params(Device{}, layout.size(), "parameters");
  const PlanOptions training{.block = 16, .training = true};
  const auto plan = [&](const ParameterLayout& its, const float* p, const PlanOptions& options) {
    return [&its, p, &options, &context, &model] {
      (void)Plan(context, model, its, {1, 28, 28}, options, p, nullptr);
    };
  };
  CHECK(contains(message_of<UsageError>(plan(layout, params.data(), training)), "gradients"));
  CHECK(contains(message_of<UsageError>(plan(layout, nullptr, training)), "parameters"));
  const ParameterLayout other{zoo::article()};
  CHECK(contains(message_of<UsageError>(plan(other, params.data(), training)), "layout"));
  const ParameterLayout more{Sequential{Flatten{}, Linear{.in = 784, .out = 128}, ReLU{},
                                        Linear{.in = 128, .out = 10},
                                        Linear{.in = 10, .out = 10, .name = "x"}}};
  CHECK(contains(message_of<UsageError>(plan(more, params.data(), training)), "layout"));
}

TEST_CASE("a plan describes itself", "[layers]") {
  Rig rig(zoo::article(), {1, 28, 28}, {.block = 16, .training = true, .fuse = false});
  const std::string text = rig.plan.describe();
  CHECK(contains(text, "conv_2"));
  CHECK(contains(text, "(16, 16, 14, 14)"));
  CHECK(contains(text, "n16"));
  CHECK(contains(text, "in place"));
  CHECK(contains(text, "block of 16 samples"));

  // Neighbours that one operation computes are one line; what lay between them is nowhere.
  Rig fused(zoo::article(), {1, 28, 28}, {.block = 16, .training = true});
  CHECK(contains(fused.plan.describe(), "conv_2+pool_2"));
  CHECK_FALSE(contains(fused.plan.describe(), "(16, 16, 14, 14)"));
}

TEST_CASE("a plan finds the first value that is not finite", "[layers]") {
  const float nan = std::nanf("");
  const auto find = [](const auto& spoil) {
    Batch batch = make_batch({1, 28, 28}, 20, 10);
    Rig rig(zoo::lenet5(), batch.sample, {.block = 32, .training = true});
    spoil(rig, batch);
    rig.gather_block(batch, 0);
    return rig.plan.find_nonfinite(rig.context, &rig.state);
  };
  const auto parameter = [](Rig& rig, const char* name) {
    for (const Parameter& each : rig.layout.parameters()) {
      if (each.name == name) return rig.params.at(each.place);
    }
    throw std::runtime_error(name);
  };
  CHECK(find([](Rig&, Batch&) {}).empty());
  for (const std::int64_t sample : {0, 17, 19}) {
    CHECK(find([&](Rig&, Batch& batch) {
            batch.x[static_cast<std::size_t>(sample * 784 + 33)] = nan;
            batch.x[19 * 784 + 600] = std::numeric_limits<float>::infinity();
          }) == "sample " + std::to_string(sample));
  }
  CHECK(find([&](Rig& rig, Batch&) { parameter(rig, "conv_1.bias")[3] = nan; }) ==
        "the output of conv_1+relu_1+pool_1");
  CHECK(find([&](Rig& rig, Batch&) { parameter(rig, "fc_2.weight")[100] = nan; }) ==
        "the output of fc_2");
  CHECK(find([&](Rig& rig, Batch&) { parameter(rig, "fc_3.weight")[5] = nan; }) ==
        "the output of fc_3");
  // Large logits are finite, and their loss may be not.
  CHECK(find([&](Rig& rig, Batch&) {
          std::fill_n(parameter(rig, "fc_3.bias"), 10, -3e38F);
          parameter(rig, "fc_3.bias")[0] = 3e38F;
        }) == "the loss of sample 0");
}
