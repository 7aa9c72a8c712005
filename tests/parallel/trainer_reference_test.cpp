// Training against the independent double-precision trainer.
#include <cmath>

#include "lockstep/data/permutation.h"
#include "lockstep/data/synthetic.h"
#include "lockstep/layers/zoo.h"
#include "lockstep/parallel/trainer.h"

#include "parallel/reference_trainer.h"
#include "support/catch.h"
#include "support/tiny_data.h"

using namespace lockstep;
using test::ReferenceTrainer;
using test::relative_difference;

namespace {

World world_of(int replicas) {
  return World({.devices = parse_devices("cpu:" + std::to_string(replicas))});
}

Sequential small_cnn() {
  return {Conv2d{.in = 1, .out = 3, .kernel = 3, .padding = same}, MaxPool2d{.kernel = 2},
          Flatten{}, Linear{.in = 75, .out = 4}};
}

void check_parameters(const Model& model, const ReferenceTrainer& reference, double tolerance) {
  const std::vector<Parameter>& parameters = model.layout().parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    INFO(parameters[i].name);
    CHECK(relative_difference(model.parameter(parameters[i].name).values(),
                              reference.parameters()[i]) < tolerance);
  }
}

}  // namespace

// The article's net, 20 steps of 64: loss of every step and every parameter. The tolerance is the
// issue's; float32 rounding over 20 steps was seen to stay below 2e-5.
TEST_CASE("twenty steps follow the double-precision trainer", "[parallel]") {
  const int replicas = GENERATE(1, 4);
  const auto [optimizer, rule, lr] = GENERATE(table<Optimizer, ReferenceTrainer::Rule, double>(
      {{Optimizer(Sgd{.lr = 0.05F}), ReferenceTrainer::Rule::sgd, 0.05},
       {Optimizer(Adam{.lr = 0.001F, .epsilon_place = EpsilonPlace::inside}),
        ReferenceTrainer::Rule::adam_tensorflow, 0.001},
       {Optimizer(Adam{.lr = 0.001F}), ReferenceTrainer::Rule::adam_pytorch, 0.001}}));
  CAPTURE(replicas, optimizer.describe());

  const Dataset data = synthetic_digits({.train = 20 * 64, .validation = 0, .test = 0}).train;
  World world = world_of(replicas);
  Trainer trainer(world, Model(zoo::article(), data.sample_shape(), 3), SoftmaxCrossEntropy{},
                  optimizer, {.seed = 3});
  ReferenceTrainer reference(trainer.model(), {{1, 8}, {8, 16}}, 28, 28, 10);
  std::vector<std::int32_t> order;
  shuffle_epoch(3, 0, data.size(), order);

  std::vector<double> losses;
  double sum = 0;
  trainer.begin(data, {.batch_size = 64});
  double ema = 0;
  trainer.on_progress([&](const Progress& progress) { ema = progress.loss_ema; });
  for (int step = 0; step < 20; ++step) {
    const double loss = reference.step(data, order, 64 * step, 64, lr, rule);
    sum = 0.9 * sum + 0.1 * loss;
    REQUIRE(trainer.run_steps(1) == 1);
    INFO("step " << step);
    CHECK(ema == Approx(sum / (1 - std::pow(0.9, step + 1))).epsilon(1e-4));
  }
  check_parameters(trainer.model(), reference, 1e-4);
}

// One step of plain gradient descent shows the gradient itself. The batches are uneven in every
// way: 50 samples over the replicas, then a last batch of 13 that leaves replicas without a sample.
TEST_CASE("any number of replicas computes the gradient of the whole batch", "[parallel]") {
  const int replicas = GENERATE(1, 2, 3, 4, 7, 8);
  const int shards_each = GENERATE(1, 3);
  CAPTURE(replicas, shards_each);
  const Dataset data = test::striped_images(63, 10, 4);
  World world = world_of(replicas);
  TrainerOptions options{.seed = 5, .shards = replicas * shards_each};
  if (shards_each > 1) options.bucket_bytes = 64;  // a reduction for every layer with parameters
  Trainer trainer(world, Model(small_cnn(), data.sample_shape(), 5), SoftmaxCrossEntropy{},
                  Sgd{.lr = 0.5F}, options);
  ReferenceTrainer reference(trainer.model(), {{1, 3}}, 10, 10, 4);
  std::vector<std::int32_t> order;
  shuffle_epoch(5, 0, data.size(), order);
  trainer.begin(data, {.batch_size = 50});

  for (const std::int64_t count : {50, 13}) {
    const Model before = trainer.model();
    (void)reference.step(data, order, count == 50 ? 0 : 50, count, 0.5,
                         ReferenceTrainer::Rule::sgd);
    REQUIRE(trainer.run_steps(1) == 1);
    const Model after = trainer.model();
    const std::vector<Parameter>& parameters = after.layout().parameters();
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      std::vector<float> gradient = before.parameter(parameters[p].name).values();
      const std::vector<float> moved = after.parameter(parameters[p].name).values();
      for (std::size_t i = 0; i < gradient.size(); ++i)
        gradient[i] = (gradient[i] - moved[i]) / 0.5F;
      INFO(parameters[p].name << ", batch of " << count);
      // The gradient is read off the weights, which rounds it at 2^-24 of a weight.
      CHECK(relative_difference(gradient, reference.gradients()[p]) < 2e-5);
    }
  }
  REQUIRE(trainer.epoch() == 0);
  CHECK(trainer.run_epoch().samples == 63);
}
