// The Trainer's behaviour: fit and its pieces, evaluation, stopping, errors.
#include "lockstep/parallel/trainer.h"

#include <cmath>
#include <limits>
#include <thread>

#include "lockstep/core/error.h"

#include "support/allocations.h"
#include "support/catch.h"
#include "support/throws.h"
#include "support/tiny_data.h"

using namespace lockstep;
using test::contains;
using test::message_of;

namespace {

Sequential net() {
  return {Conv2d{.in = 1, .out = 3, .kernel = 3, .padding = same},
          ReLU{},
          MaxPool2d{.kernel = 2},
          Flatten{},
          Dropout{.rate = 0.2F},
          Linear{.in = 48, .out = 4}};
}

World world_of(int replicas) {
  return World({.devices = parse_devices("cpu:" + std::to_string(replicas))});
}

/// Throws in the forward pass on one replica from a given call on.
struct FaultyLayer {
  int replica = 0;
  int calls = 0;
  std::string name{};

  struct Bound final : Layer {
    Bound(int replica_in, int calls_in) : replica(replica_in), calls_left(calls_in) {}
    void forward(Context& context, const Pass& pass) override {
      if (pass.training && context.device().index == replica && calls_left-- == 0) {
        throw DataError("planted fault");
      }
    }
    void backward(Context&, const Pass&, bool) override {}
    int replica;
    int calls_left;
  };

  static constexpr const char* kKind = "faulty";
  [[nodiscard]] Shape output_shape(const Shape& in) const { return in; }
  [[nodiscard]] std::vector<ParameterSpec> parameters() const { return {}; }
  [[nodiscard]] std::string summary() const { return "faulty"; }
  [[nodiscard]] std::size_t saved_bytes(const Shape&, const Shape&) const { return 0; }
  [[nodiscard]] std::size_t workspace_bytes(Context&, const Shape&) const { return 0; }
  [[nodiscard]] std::unique_ptr<Layer> bind(const Binding&) const {
    return std::make_unique<Bound>(replica, calls);
  }
};

}  // namespace

TEST_CASE("fit learns and reports every epoch", "[parallel]") {
  const Dataset train = test::striped_images(500, 8, 4);
  const Dataset validation = test::striped_images(100, 8, 4, 2);
  World world = world_of(2);
  Trainer trainer(world, net(), SoftmaxCrossEntropy{}, Adam{.lr = 0.01},
                  {.seed = 1, .schedule = ExponentialDecay{}});
  std::vector<EpochStats> epochs;
  trainer.on_epoch([&](const EpochStats& epoch) { epochs.push_back(epoch); });
  const FitResult result = trainer.fit(train, validation, {.epochs = 4, .batch_size = 32});
  CHECK(result.epochs == 4);
  CHECK_FALSE(result.stop_requested);
  CHECK(result.best_epoch >= 0);
  REQUIRE(epochs.size() == 4);
  for (int i = 0; i < 4; ++i) {
    const EpochStats& epoch = epochs[static_cast<std::size_t>(i)];
    CHECK(epoch.epoch == i);
    CHECK(epoch.learning_rate == Approx(0.01 * std::pow(0.7, i)));
    CHECK(epoch.steps == 16);
    CHECK(epoch.samples == 500);
    CHECK(epoch.has_validation);
    CHECK(epoch.train_loss == epoch.data_loss);
    CHECK(epoch.reg_loss == 0);
  }
  CHECK(epochs[3].val_accuracy > 0.9);
  CHECK(epochs[3].train_loss < 0.5 * epochs[0].train_loss);
  CHECK(trainer.epoch() == 4);
  CHECK(trainer.step() == 64);
  CHECK(trainer.sharding() == Sharding{2, 2, 32, 16});
}

TEST_CASE("the loop in pieces is fit, bit for bit, and so are two fits in a row", "[parallel]") {
  const Dataset train = test::striped_images(150, 8, 4);
  const Dataset validation = test::striped_images(40, 8, 4, 2);
  const TrainerOptions options{.seed = 2, .schedule = ExponentialDecay{}};
  World world = world_of(3);
  Trainer whole(world, net(), SoftmaxCrossEntropy{}, Adam{.lr = 0.01}, options);
  whole.fit(train, validation, {.epochs = 3, .batch_size = 32});

  Trainer pieces(world, net(), SoftmaxCrossEntropy{}, Adam{.lr = 0.01}, options);
  pieces.begin(train, {.batch_size = 32});
  while (pieces.epoch() < 3) {
    CHECK(pieces.run_steps(2) == 2);
    CHECK(pieces.run_steps(3) == 3);  // the last of the epoch: run_epoch closes it
    const EpochStats epoch = pieces.run_epoch();
    CHECK(epoch.samples == 150);
    CHECK(epoch.steps == 5);
  }
  CHECK(pieces.model().arena() == whole.model().arena());

  Trainer steps(world, net(), SoftmaxCrossEntropy{}, Adam{.lr = 0.01}, options);
  steps.begin(train, {.batch_size = 32});
  CHECK(steps.run_steps(15) == 15);  // over the ends of epochs
  CHECK(steps.model().arena() == whole.model().arena());

  Trainer twice(world, net(), SoftmaxCrossEntropy{}, Adam{.lr = 0.01}, options);
  twice.fit(train, {.epochs = 1, .batch_size = 32});
  twice.fit(train, {.epochs = 2, .batch_size = 32});
  CHECK(twice.model().arena() == whole.model().arena());
}

TEST_CASE("training goes on after a change of the number of replicas", "[parallel]") {
  const Dataset train = test::striped_images(128, 8, 4);
  World world({.devices = {.list = parse_devices("cpu:4").list, .automatic = true}});
  Trainer trainer(world, net(), SoftmaxCrossEntropy{}, Adam{.lr = 0.01},
                  {.reduce = Reduce::invariant});
  trainer.fit(train, {.epochs = 1, .batch_size = 64});
  CHECK(trainer.sharding().replicas == 4);
  trainer.fit(train, {.epochs = 1, .batch_size = 32});
  CHECK(trainer.sharding().replicas == 2);  // 16 samples each

  World one = world_of(1);
  Trainer same_on_one(one, net(), SoftmaxCrossEntropy{}, Adam{.lr = 0.01},
                      {.reduce = Reduce::invariant});
  same_on_one.fit(train, {.epochs = 1, .batch_size = 64});
  same_on_one.fit(train, {.epochs = 1, .batch_size = 32});
  CHECK(same_on_one.model().arena() == trainer.model().arena());
}

TEST_CASE("evaluation is exact: every sample once, the same bits for any world and batch",
          "[parallel]") {
  const std::int64_t count = GENERATE(1, 3, 16, 255, 256, 257, 700);
  CAPTURE(count);
  const Dataset data = test::striped_images(count, 8, 4);
  const Model model(net(), data.sample_shape(), 9);
  const Tensor logits = model.predict(data.tensor(0, count));
  double loss = 0;
  std::int64_t correct = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const float* row = logits.data() + i * 4;
    const double largest = *std::max_element(row, row + 4);
    double sum = 0;
    for (int c = 0; c < 4; ++c) sum += std::exp(static_cast<double>(row[c]) - largest);
    loss += std::log(sum) + largest - static_cast<double>(row[data.classes()[i]]);
    correct += std::max_element(row, row + 4) - row == data.classes()[i] ? 1 : 0;
  }
  EvalStats first;
  for (const int replicas : {1, 2, 3, 8}) {
    World world = world_of(replicas);
    Trainer trainer(world, model, SoftmaxCrossEntropy{}, Sgd{});
    const EvalStats stats = trainer.evaluate(data);
    CHECK(stats.samples == count);
    CHECK(stats.correct == correct);
    CHECK(stats.loss == Approx(loss / static_cast<double>(count)).epsilon(1e-6));
    if (replicas == 1) first = stats;
    CHECK(stats.loss == first.loss);
  }
}

TEST_CASE("an evaluation of nothing is zero", "[parallel]") {
  const Dataset data = test::striped_images(4, 8, 4);
  World world = world_of(2);
  Trainer trainer(world, net(), SoftmaxCrossEntropy{}, Sgd{});
  const EvalStats stats = trainer.evaluate(data.take(0));
  CHECK(stats.samples == 0);
  CHECK(stats.accuracy() == 0);
  CHECK(stats.loss == 0);
}

TEST_CASE("an evaluation fixes the shape of the samples", "[parallel]") {
  const Dataset square = test::striped_images(20, 8, 4);
  const Dataset wide = Dataset::from_floats(
      "wide", Tensor(Shape{20, 1, 4, 16}, square.tensor(0, 20).values()),
      {square.classes(), square.classes() + 20}, 4);  // as many values in another shape
  World world({.devices = {.list = parse_devices("cpu:8").list, .automatic = true}});
  Trainer trainer(world, net(), SoftmaxCrossEntropy{}, Sgd{});
  CHECK(trainer.replicas() == 0);
  (void)trainer.evaluate(square);
  CHECK(trainer.replicas() == 1);  // one chunk: more replicas would have nothing to do
  CHECK_THROWS_AS(trainer.evaluate(wide), ShapeError);
  CHECK_THROWS_AS(trainer.begin(wide), ShapeError);
}

TEST_CASE("evaluating changes no bit of training", "[parallel]") {
  const Dataset train = test::striped_images(200, 8, 4);
  World world = world_of(2);
  Trainer plain(world, net(), SoftmaxCrossEntropy{}, Adam{});
  Trainer evaluated(world, net(), SoftmaxCrossEntropy{}, Adam{});
  plain.begin(train, {.batch_size = 32});
  evaluated.begin(train, {.batch_size = 32});
  while (plain.epoch() < 2) plain.run_epoch();
  (void)evaluated.evaluate(train);
  while (evaluated.epoch() < 2) {
    for (int step = 0; step < 7; ++step) {
      CHECK(evaluated.run_steps(1) == 1);
      (void)evaluated.evaluate(train.take(77));
    }
    (void)evaluated.run_epoch();
  }
  CHECK(plain.model().arena() == evaluated.model().arena());
}

TEST_CASE("a last batch is kept or dropped", "[parallel]") {
  const Dataset train = test::striped_images(70, 8, 4);
  World world = world_of(2);
  Trainer trainer(world, net(), SoftmaxCrossEntropy{}, Sgd{});
  trainer.begin(train, {.batch_size = 32, .last_batch = LastBatch::drop});
  const EpochStats dropped = trainer.run_epoch();
  CHECK(dropped.steps == 2);
  CHECK(dropped.samples == 64);
  trainer.begin(train, {.batch_per_replica = 16});
  const EpochStats kept = trainer.run_epoch();
  CHECK(kept.steps == 3);
  CHECK(kept.samples == 70);
  CHECK_THROWS_AS(trainer.begin(train, {.batch_size = 100, .last_batch = LastBatch::drop}),
                  UsageError);
}

TEST_CASE("data smaller than a batch and than the world trains", "[parallel]") {
  const Dataset train = test::striped_images(3, 8, 4);
  World world = world_of(8);
  Trainer trainer(world, net(), SoftmaxCrossEntropy{}, Adam{.lr = 0.05});
  trainer.fit(train, {.epochs = 30, .batch_size = 128});
  CHECK(trainer.step() == 30);
  CHECK(trainer.evaluate(train).correct == 3);
}

TEST_CASE("L2 is a term of its own, counted once for any number of replicas", "[parallel]") {
  const Dataset train = test::striped_images(64, 8, 4);
  std::vector<EpochStats> all;
  for (const int replicas : {1, 4}) {
    World world = world_of(replicas);
    Trainer trainer(world, net(), SoftmaxCrossEntropy{}, Sgd{.lr = 0.1F}, {.l2 = 0.01F});
    const Model before(net(), train.sample_shape(), 0);
    double squares = 0;
    for (const Parameter& parameter : before.layout().parameters()) {
      if (!parameter.spec.decays) continue;
      for (const float w : before.parameter(parameter.name).values())
        squares += static_cast<double>(w) * w;
    }
    trainer.begin(train, {.batch_size = 64});
    const EpochStats epoch = trainer.run_epoch();
    CHECK(epoch.reg_loss == Approx(0.01 * squares / 2).epsilon(1e-5));
    CHECK(epoch.train_loss == Approx(epoch.data_loss + epoch.reg_loss));
    all.push_back(epoch);
  }
  CHECK(all[0].reg_loss == Approx(all[1].reg_loss).epsilon(1e-6));
}

TEST_CASE("L2's gradient is added once, for any number of replicas", "[parallel]") {
  const Dataset train = test::striped_images(64, 8, 4);
  const Model before(net(), train.sample_shape(), 0);
  for (const int replicas : {1, 4}) {
    INFO(replicas << " replicas");
    const auto after_a_step = [&](float l2) {
      World world = world_of(replicas);
      Trainer trainer(world, before, SoftmaxCrossEntropy{}, Sgd{.lr = 0.5F}, {.l2 = l2});
      trainer.begin(train, {.batch_size = 64});
      trainer.run_steps(1);
      return trainer.model();
    };
    const Model without = after_a_step(0);
    const Model with = after_a_step(0.25F);
    for (const Parameter& parameter : before.layout().parameters()) {
      INFO(parameter.name);
      const std::vector<float> start = before.parameter(parameter.name).values();
      const std::vector<float> plain = without.parameter(parameter.name).values();
      const std::vector<float> drawn = with.parameter(parameter.name).values();
      const float share = parameter.spec.decays ? 0.5F * 0.25F : 0.0F;
      for (std::size_t i = 0; i < start.size(); ++i) {
        REQUIRE(plain[i] - drawn[i] == Approx(share * start[i]).margin(1e-6));
      }
    }
  }
}

TEST_CASE("clipping bounds the global gradient, once, for any number of replicas", "[parallel]") {
  const Dataset train = test::striped_images(64, 8, 4);
  for (const int replicas : {1, 4}) {
    World world = world_of(replicas);
    Trainer trainer(world, net(), SoftmaxCrossEntropy{}, Sgd{.lr = 1.0F}, {.clip_norm = 0.01F});
    trainer.begin(train, {.batch_size = 64});
    const std::vector<float> before = trainer.model().arena();
    trainer.run_steps(1);
    const std::vector<float> after = trainer.model().arena();
    double squares = 0;
    for (std::size_t i = 0; i < before.size(); ++i) {
      squares += std::pow(static_cast<double>(after[i]) - static_cast<double>(before[i]), 2);
    }
    CHECK(std::sqrt(squares) == Approx(0.01).epsilon(1e-3));
  }
}

TEST_CASE("soft targets that are one-hot train like class indices", "[parallel]") {
  const Dataset hard = test::striped_images(64, 8, 4);
  Tensor targets(Shape{64, 4});
  for (std::int64_t i = 0; i < 64; ++i) targets.data()[i * 4 + hard.classes()[i]] = 1;
  const Dataset soft = Dataset::from_floats("soft", hard.tensor(0, 64), targets);
  World world = world_of(2);
  Trainer with_classes(world, net(), SoftmaxCrossEntropy{}, Adam{});
  Trainer with_soft(world, net(), SoftmaxCrossEntropy{}, Adam{});
  with_classes.fit(hard, {.epochs = 3, .batch_size = 32});
  with_soft.fit(soft, {.epochs = 3, .batch_size = 32});
  const std::vector<float> a = with_classes.model().arena();
  const std::vector<float> b = with_soft.model().arena();
  for (std::size_t i = 0; i < a.size(); ++i) REQUIRE(a[i] == Approx(b[i]).margin(1e-5));
  CHECK(with_classes.evaluate(hard).correct == with_soft.evaluate(soft).correct);
  CHECK(with_soft.evaluate(hard).correct ==
        with_soft.evaluate(soft).correct);  // either kind of target
}

TEST_CASE("a stop request ends fit after the current step on all replicas", "[parallel]") {
  const Dataset train = test::striped_images(640, 8, 4);
  World world = world_of(4);
  Trainer trainer(world, net(), SoftmaxCrossEntropy{}, Sgd{});
  trainer.on_progress([&](const Progress& progress) {
    if (progress.done == 5) trainer.request_stop();
  });
  int epochs = 0;
  trainer.on_epoch([&](const EpochStats&) { ++epochs; });
  const FitResult result = trainer.fit(train, {.epochs = 3, .batch_size = 64});
  CHECK(result.stop_requested);
  CHECK(result.epochs == 0);
  CHECK(epochs == 0);
  CHECK(trainer.step() == 6);  // the request is seen when the next step opens
  CHECK_FALSE(trainer.stop_requested());
  trainer.on_progress({});
  CHECK(trainer.fit(train, {.epochs = 1, .batch_size = 64}).epochs == 1);
}

TEST_CASE("training stops early and ends with the best weights", "[parallel]") {
  const Dataset train = test::striped_images(64, 8, 4);
  const Dataset validation = test::striped_images(64, 8, 4, 2);
  World world = world_of(1);
  // A rate this high makes the validation loss go up again at once.
  Trainer trainer(world, net(), SoftmaxCrossEntropy{}, Sgd{.lr = 30.0F});
  std::vector<double> losses;
  trainer.on_epoch([&](const EpochStats& epoch) { losses.push_back(epoch.val_loss); });
  const FitResult result =
      trainer.fit(train, validation,
                  {.epochs = 50, .batch_size = 16, .early_stopping = 3, .restore_best = true});
  CHECK(result.stopped_early);
  const auto best = std::min_element(losses.begin(), losses.end());
  CHECK(result.best_epoch == best - losses.begin());
  CHECK(static_cast<int>(losses.size()) == result.best_epoch + 4);
  CHECK(trainer.evaluate(validation).loss == *best);
}

TEST_CASE("what a replica throws ends fit, whichever replica it is", "[parallel]") {
  const Dataset train = test::striped_images(256, 8, 4);
  const int replicas = GENERATE(1, 2, 5);
  for (int faulty = 0; faulty < replicas; ++faulty) {
    World world = world_of(replicas);
    Sequential model{FaultyLayer{.replica = faulty, .calls = 3}, Flatten{},
                     Linear{.in = 64, .out = 4}};
    Trainer trainer(world, model, SoftmaxCrossEntropy{}, Sgd{});
    const std::string text = message_of<DataError>(
        [&] { trainer.fit(train, {.epochs = 2, .batch_size = 16 * replicas}); });
    CAPTURE(text);
    CHECK(contains(text, "planted fault"));
    CHECK(contains(text, "rank " + std::to_string(faulty)));
    CHECK(contains(text, "cpu:" + std::to_string(faulty)));
    CHECK(contains(text, "faulty"));  // the layer
  }
}

TEST_CASE("an error in a callback ends fit with it", "[parallel]") {
  const Dataset train = test::striped_images(64, 8, 4);
  World world = world_of(3);
  Trainer trainer(world, net(), SoftmaxCrossEntropy{}, Sgd{});
  trainer.on_epoch([](const EpochStats&) { throw IoError("disk full"); });
  CHECK_THROWS_AS(trainer.fit(train, {.epochs = 2, .batch_size = 32}), IoError);
  trainer.on_epoch({});
  CHECK(trainer.fit(train, {.epochs = 1, .batch_size = 32}).epochs == 1);
}

TEST_CASE("replicas stay equal when a run fails, whenever that is", "[parallel]") {
  const Dataset train = test::striped_images(640, 8, 4);
  World world = world_of(8);  // more than cores: replicas are far apart
  Trainer plain(world, net(), SoftmaxCrossEntropy{}, Adam{.lr = 0.01});
  plain.begin(train, {.batch_size = 16});
  plain.run_steps(40);

  Trainer interrupted(world, net(), SoftmaxCrossEntropy{}, Adam{.lr = 0.01});
  interrupted.begin(train, {.batch_size = 16});
  for (std::int64_t stop = 1; interrupted.step() < 40; stop += 3) {
    interrupted.on_progress([&](const Progress& progress) {
      if (progress.done >= stop) throw DataError("planted fault");
    });
    try {
      interrupted.run_steps(40 - interrupted.step());
    } catch (const DataError&) {
    }
  }
  CHECK(interrupted.model().arena() == plain.model().arena());
}

TEST_CASE("a gradient that is not finite stops with step and sample, weights stay good",
          "[parallel]") {
  const Dataset good = test::striped_images(96, 8, 4);
  Tensor pixels = good.tensor(0, 96);
  pixels.data()[40 * 64 + 7] = std::numeric_limits<float>::quiet_NaN();
  const Dataset bad = Dataset::from_floats("bad", pixels, {good.classes(), good.classes() + 96}, 4);
  World world = world_of(2);
  Trainer trainer(world, net(), SoftmaxCrossEntropy{}, Adam{});
  const std::string text =
      message_of<NonFiniteError>([&] { trainer.fit(bad, {.epochs = 1, .batch_size = 16}); });
  CAPTURE(text);
  CHECK(contains(text, "step " + std::to_string(trainer.step()) + " of epoch 0"));
  CHECK(contains(text, "sample 40"));
  for (const float weight : trainer.model().arena()) REQUIRE(std::isfinite(weight));
}

TEST_CASE("options that cannot work are refused before anything happens", "[parallel]") {
  const Dataset train = test::striped_images(64, 8, 4);
  World world = world_of(2);
  const auto with = [&](const TrainerOptions& options) {
    Trainer(world, net(), SoftmaxCrossEntropy{}, Sgd{}, options);
  };
  CHECK_THROWS_AS(with({.shards = -1}), UsageError);
  CHECK_THROWS_AS(with({.bucket_bytes = 1}), UsageError);
  CHECK_THROWS_AS(with({.l2 = -1}), UsageError);
  CHECK_THROWS_AS(with({.clip_norm = std::numeric_limits<float>::quiet_NaN()}), UsageError);
  Trainer trainer(world, net(), SoftmaxCrossEntropy{}, Sgd{});
  CHECK_THROWS_AS(trainer.model(), UsageError);
  CHECK_THROWS_AS(trainer.sharding(), UsageError);
  CHECK_THROWS_AS(trainer.run_epoch(), UsageError);
  CHECK_THROWS_AS(trainer.fit(train, {.epochs = 0}), UsageError);
  CHECK_THROWS_AS(trainer.fit(train, {.batch_size = 0}), UsageError);
  CHECK_THROWS_AS(trainer.fit(train, {.early_stopping = 1}), UsageError);
  CHECK_THROWS_AS(trainer.fit(train.take(0), {}), UsageError);
  CHECK_THROWS_AS(trainer.run_steps(0), UsageError);
  CHECK_THROWS_AS(trainer.fit(test::striped_images(64, 10, 4), {}), ShapeError);  // fc does not fit
  CHECK_THROWS_AS(trainer.fit(test::striped_images(64, 8, 5), {}),
                  ShapeError);  // 5 classes, 4 logits
  trainer.fit(train, {});
  CHECK_THROWS_AS(trainer.evaluate(test::striped_images(64, 12, 4)), ShapeError);
}

TEST_CASE("a step allocates nothing after warm-up", "[parallel]") {
  const Dataset train = test::striped_images(640, 8, 4);
  World world = world_of(2);
  for (const Reduce reduce : {Reduce::fast, Reduce::invariant}) {
    Trainer trainer(world, net(), SoftmaxCrossEntropy{}, Adam{},
                    {.reduce = reduce, .bucket_bytes = 64, .l2 = 1e-4F, .clip_norm = 1});
    trainer.begin(train, {.batch_size = 32});
    std::int64_t after_first = 0;
    std::int64_t after_last = 0;
    trainer.on_progress([&](const Progress& progress) {
      (progress.done == 2 ? after_first : after_last) = test::allocations();
    });
    (void)trainer.run_epoch();
    CHECK(after_first > 0);
    CHECK(after_last - after_first == 0);
  }
}
