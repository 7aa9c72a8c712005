// Checkpoints of a Trainer: a training that was cut and resumed has the bits of one that was not.
#include <cmath>
#include <filesystem>
#include <thread>

#include "lockstep/core/error.h"

#include "io/scratch.h"
#include "parallel/resume_cases.h"
#include "support/catch.h"
#include "support/throws.h"

using namespace lockstep;
using test::check_equal;
using test::contains;
using test::figures_of;
using test::message_of;
using test::Scratch;
using test::Training;

namespace {

Devices cpus(int count) {
  return parse_devices("cpu:" + std::to_string(count));
}

std::vector<Optimizer> optimizers() {
  return {Adam{.lr = 0.005},
          Adam{.lr = 0.005, .epsilon_place = EpsilonPlace::inside},
          AdamW{.lr = 0.005, .weight_decay = 0.1F},
          Sgd{.lr = 0.05},
          Sgd{.lr = 0.05, .momentum = 0.9F},
          Sgd{.lr = 0.05, .momentum = 0.9F, .nesterov = true}};
}

std::vector<Schedule> schedules() {
  return {ConstantRate{}, ExponentialDecay{}, StepDecay{.every = 2, .factor = 0.5},
          CosineDecay{.warmup_steps = 4, .min = 1e-4}};
}

}  // namespace

TEST_CASE("20 steps are 10, a checkpoint and 10: every optimizer, schedule and mode",
          "[parallel]") {
  const Scratch scratch;
  int folders = 0;
  const auto new_folder = [&] { return scratch / std::to_string(folders++); };
  const auto check = [&](const Training& training) {
    INFO(training.optimizer.describe() << ", " << training.options.schedule.describe());
    test::check_20_is_10_and_10(training, cpus(2), new_folder);
  };
  for (const Reduce reduce : {Reduce::fast, Reduce::invariant}) {
    for (const Optimizer& optimizer : optimizers()) {
      check({optimizer,
             {.seed = 11,
              .reduce = reduce,
              .bucket_bytes = 1024,
              .schedule = ExponentialDecay{},
              .l2 = 1e-3F,
              .clip_norm = 1.0F}});
    }
    for (const Schedule& schedule : schedules()) {
      check({Adam{.lr = 0.005}, {.seed = 3, .reduce = reduce, .schedule = schedule}});
    }
  }
}

TEST_CASE("invariant mode: saved on 8 replicas, the same bits on 1, 2, 4 and 8", "[parallel]") {
  const Training training{Adam{.lr = 0.005}, {.seed = 5, .reduce = Reduce::invariant}};
  const Checkpoint whole = test::train_for(training, cpus(8), 20);
  const Checkpoint half = test::train_for(training, cpus(8), 10);
  for (const int replicas : {1, 2, 4, 8}) {
    INFO(replicas << " replicas");
    const Checkpoint resumed = test::go_on(training, cpus(replicas), half, 10);
    check_equal(resumed, whole);
    CHECK(bit_differences(half.execution, resumed.execution, true).empty());
  }
  CHECK_THROWS_AS(test::go_on(training, cpus(3), half, 10), UsageError);
  // A power of two, but not the checkpoint's.
  Training other = training;
  other.options.shards = 16;
  CHECK(contains(message_of<UsageError>([&] { test::go_on(other, cpus(2), half, 10); }),
                 "16 shards; the checkpoint has 8"));
}

TEST_CASE("fast mode: saved on 8 replicas, 3 go on and it is said what is not equal",
          "[parallel]") {
  const Training training{Adam{.lr = 0.005}, {.seed = 5}};
  const Checkpoint whole = test::train_for(training, cpus(8), 20);
  const Checkpoint half = test::train_for(training, cpus(8), 10);
  CHECK(half.execution.shards == 8);
  const Checkpoint three = test::go_on(training, cpus(3), half, 10);
  CHECK(three.execution.replicas == 3);
  CHECK(three.execution.shards == 3);
  CHECK(three.step.step == 20);
  for (std::size_t i = 0; i < whole.weights.size(); ++i) {
    const auto& expected = whole.weights[i].values.values();
    const auto& found = three.weights[i].values.values();
    for (std::size_t k = 0; k < expected.size(); ++k) {
      REQUIRE(found[k] == Approx(expected[k]).margin(2e-3));
    }
  }
  const auto reasons = bit_differences(half.execution, three.execution, false);
  REQUIRE(reasons.size() >= 2);
  CHECK(reasons[0] == "3 replicas in fast mode instead of 8");
  CHECK(reasons[1] == "3 shards instead of 8");
  // Four can share the checkpoint's shards.
  CHECK(test::go_on(training, cpus(4), half, 10).execution.shards == 8);
}

TEST_CASE("the batch of the whole world comes from the checkpoint", "[parallel]") {
  const Dataset data = test::resume_data();
  const auto train = [&](int replicas, const Checkpoint* from) {
    World world({.devices = cpus(replicas)});
    Trainer trainer(world, test::dropout_net(), SoftmaxCrossEntropy{}, Adam{});
    if (from != nullptr) trainer.restore(*from);
    trainer.begin(data, {.batch_per_replica = 16});
    trainer.run_steps(5);
    return trainer.checkpoint();
  };
  const Checkpoint four = train(4, nullptr);
  CHECK(four.recipe.batch_size == 64);
  CHECK(four.position() == 5 * 64);
  const Checkpoint two = train(2, &four);
  CHECK(two.recipe.batch_size == 64);
  CHECK(two.step.step_in_epoch == 1);  // 9 steps an epoch, as before
}

TEST_CASE("a fit goes on where it was cut, with figures and best epoch as if it had not been",
          "[parallel]") {
  const Dataset train = test::resume_data();
  const Dataset validation = test::striped_images(70, 8, 5, 2);
  const FitOptions options{
      .epochs = 6, .batch_size = 64, .early_stopping = 3, .restore_best = true};
  struct Result {
    std::vector<std::vector<double>> figures;
    std::vector<Checkpoint> checkpoints;
    std::vector<float> weights;
    FitResult fit;
  };
  const auto run = [&](const Checkpoint* from) {
    World world({.devices = cpus(2)});
    // The rate makes validation go up and down.
    Trainer trainer(world, test::dropout_net(), SoftmaxCrossEntropy{}, Adam{.lr = 0.05},
                    {.seed = 4, .schedule = CosineDecay{.warmup_steps = 3}, .l2 = 1e-4F});
    Result result;
    trainer.on_epoch([&](const EpochStats& epoch) {
      result.figures.push_back(figures_of(epoch));
      result.figures.back().push_back(epoch.val_loss);
      result.figures.back().push_back(epoch.val_accuracy);
    });
    trainer.on_checkpoint(
        [&](Checkpoint checkpoint) { result.checkpoints.push_back(std::move(checkpoint)); },
        {.every_steps = 5});
    if (from != nullptr) trainer.restore(*from);
    result.fit = trainer.fit(train, validation, options);
    result.weights = trainer.model().arena();
    return result;
  };
  const Result whole = run(nullptr);
  REQUIRE(whole.figures.size() >= 3);
  CHECK(whole.checkpoints.front().step.step == 0);
  // One at the begin, one an epoch, and one every 5 steps but at the end of an epoch.
  for (std::size_t i = 0; i < whole.checkpoints.size(); ++i) {
    const Checkpoint& from = whole.checkpoints[i];
    INFO("from step " << from.step.step << " of epoch " << from.step.epoch);
    const Result rest = run(&from);
    CHECK(rest.weights == whole.weights);
    CHECK(rest.fit.best_epoch == whole.fit.best_epoch);
    CHECK(rest.fit.stopped_early == whole.fit.stopped_early);
    CHECK(rest.fit.epochs == whole.fit.epochs - static_cast<int>(from.step.epoch));
    REQUIRE(rest.figures.size() + from.step.epoch == whole.figures.size());
    for (std::size_t k = 0; k < rest.figures.size(); ++k) {
      CHECK(rest.figures[k] == whole.figures[from.step.epoch + k]);
    }
    REQUIRE(rest.checkpoints.size() + i + 1 == whole.checkpoints.size());
    for (std::size_t k = 0; k < rest.checkpoints.size(); ++k) {
      check_equal(rest.checkpoints[k], whole.checkpoints[i + 1 + k]);
    }
  }
}

TEST_CASE("checkpoints come at the steps, times and ends that were asked for", "[parallel]") {
  const Dataset train = test::resume_data();  // 9 steps an epoch
  World world({.devices = cpus(2)});
  const auto steps_of = [&](const CheckpointTimes& times, const auto& work) {
    Trainer trainer(world, test::dropout_net(), SoftmaxCrossEntropy{}, Adam{});
    std::vector<std::uint64_t> steps;
    trainer.on_checkpoint([&](const Checkpoint& c) { steps.push_back(c.step.step); }, times);
    work(trainer);
    return steps;
  };
  using Steps = std::vector<std::uint64_t>;
  const auto fit = [&](Trainer& trainer) { trainer.fit(train, {.epochs = 2, .batch_size = 64}); };
  CHECK(steps_of({}, fit) == Steps{0, 9, 18});
  CHECK(steps_of({.every_steps = 4}, fit) == Steps{0, 4, 8, 9, 12, 16, 18});
  CHECK(steps_of({.every_steps = 9}, fit) == Steps{0, 9, 18});
  // A time that is always over: a checkpoint whenever replicas come back.
  const Steps always = steps_of({.every_seconds = 1e-9}, fit);
  CHECK(always.size() > 6);
  CHECK(std::is_sorted(always.begin(), always.end()));
  CHECK(steps_of({.every_seconds = 1e6}, fit) == Steps{0, 9, 18});
  CHECK(steps_of({.every_steps = 3}, [&](Trainer& trainer) {
          trainer.begin(train, {.batch_size = 64});
          trainer.run_steps(10);
          trainer.run_epoch();
        }) == Steps{3, 6, 9, 12, 15, 18});
  CHECK(steps_of({}, [&](Trainer& trainer) {
          trainer.on_progress([&](const Progress& progress) {
            if (progress.done == 5) trainer.request_stop();
          });
          fit(trainer);
        }) == Steps{0, 6});
  // A checkpoint that takes time away is no stop: nothing is left out, and the bits stay.
  const auto weights_of = [&](const CheckpointTimes& times) {
    Trainer trainer(world, test::dropout_net(), SoftmaxCrossEntropy{}, Adam{});
    trainer.on_checkpoint([](const Checkpoint&) {}, times);
    const FitResult result = trainer.fit(train, {.epochs = 2, .batch_size = 64});
    CHECK(result.epochs == 2);
    CHECK_FALSE(result.stop_requested);
    return trainer.model().arena();
  };
  CHECK(weights_of({.every_seconds = 1e-9}) == weights_of({}));
}

TEST_CASE("a stop request that meets a checkpoint is not lost", "[parallel]") {
  const Dataset train = test::resume_data();
  World world({.devices = cpus(2)});
  for (int round = 0; round < 50; ++round) {
    Trainer trainer(world, test::dropout_net(), SoftmaxCrossEntropy{}, Adam{});
    trainer.on_checkpoint([](const Checkpoint&) {}, {.every_seconds = 1e-9});
    std::thread other([&] { trainer.request_stop(); });
    const FitResult result = trainer.fit(train, {.epochs = 100000, .batch_size = 64});
    other.join();
    CHECK(result.stop_requested);
  }
}

TEST_CASE("a trainer goes back to a checkpoint of its own", "[parallel]") {
  const Dataset train = test::resume_data();
  World world({.devices = cpus(2)});
  Trainer trainer(world, test::dropout_net(), SoftmaxCrossEntropy{}, Adam{});
  CHECK_THROWS_AS(trainer.checkpoint(), UsageError);
  trainer.begin(train, {.batch_size = 64});
  trainer.run_steps(4);
  const Checkpoint four = trainer.checkpoint();
  trainer.run_steps(8);
  const Checkpoint twelve = trainer.checkpoint();
  trainer.restore(four);
  CHECK(trainer.step() == 4);
  CHECK_THROWS_AS(trainer.run_steps(1), UsageError);  // begin first
  trainer.begin(train, {.batch_size = 64});
  trainer.run_steps(8);
  check_equal(trainer.checkpoint(), twelve);
}

TEST_CASE("restoring what is not this training is refused by name, and changes nothing",
          "[parallel]") {
  const Dataset train = test::resume_data();
  World world({.devices = cpus(2)});
  const auto trainer_with = [&](const Sequential& model, const Optimizer& optimizer,
                                const TrainerOptions& options) {
    return std::make_unique<Trainer>(world, model, SoftmaxCrossEntropy{}, optimizer, options);
  };
  const Sequential net = test::dropout_net();
  const auto source = trainer_with(net, Adam{}, {.seed = 1});
  source->begin(train, {.batch_size = 64});
  source->run_steps(3);
  const Checkpoint from = source->checkpoint();
  const auto refusal = [&](const Sequential& model, const Optimizer& optimizer,
                           const TrainerOptions& options) {
    const auto trainer = trainer_with(model, optimizer, options);
    return message_of<UsageError>([&] { trainer->restore(from); });
  };
  CHECK(contains(refusal(net, Adam{}, {.seed = 2}), "the seed is 2 and was 1"));
  CHECK(contains(refusal(net, Adam{.lr = 0.5}, {.seed = 1}), "the optimizer is adam lr=0.5"));
  CHECK(contains(refusal(net, Adam{}, {.seed = 1, .schedule = StepDecay{}}), "the schedule is"));
  CHECK(contains(refusal(net, Adam{}, {.seed = 1, .l2 = 0.5F}), "l2 is 0.5 and was 0"));
  CHECK(contains(refusal(net, Adam{}, {.seed = 1, .clip_norm = 2}), "clip_norm is 2 and was 0"));
  CHECK(contains(refusal(net, Adam{}, {.seed = 1, .reduce = Reduce::invariant}),
                 "the reduction is invariant and was fast"));
  CHECK(contains(refusal(net, Adam{}, {.seed = 1, .fuse = false}), "fusing of layers is off"));
  CHECK(contains(refusal({Flatten{}, Linear{.in = 64, .out = 5}}, Adam{}, {.seed = 1}),
                 "the model is flatten"));

  const auto refused_begin = [&](const Dataset& data, const BatchOptions& options) {
    const auto trainer = trainer_with(net, Adam{}, {.seed = 1});
    trainer->restore(from);
    std::string text = message_of<UsageError>([&] { trainer->begin(data, options); });
    trainer->begin(train, {.batch_size = 64});  // the right one can still go on
    CHECK(trainer->step() == 3);
    return text;
  };
  CHECK(contains(refused_begin(train, {.batch_size = 32}), "the batch size is 32 and was 64"));
  CHECK(contains(refused_begin(train, {.batch_size = 64, .last_batch = LastBatch::drop}),
                 "the last batch is drop and was keep"));
  CHECK(contains(refused_begin(train.take(500), {.batch_size = 64}),
                 "the number of training samples is 500 and was 540"));
  CHECK(contains(refused_begin(test::striped_images(540, 8, 5, 9), {.batch_size = 64}),
                 "the SHA-256 of the training data is"));

  const auto bad_tensors = [&](const auto& change) {
    Checkpoint changed = from;
    change(changed);
    const auto trainer = trainer_with(net, Adam{}, {.seed = 1});
    std::string text = message_of<UsageError>([&] { trainer->restore(changed); });
    CHECK(trainer->step() == 0);
    return text;
  };
  CHECK(contains(bad_tensors([](Checkpoint& c) { c.weights.pop_back(); }),
                 "has no tensor 'fc_2.bias'"));
  CHECK(contains(bad_tensors([](Checkpoint& c) { c.moments.erase(c.moments.begin()); }),
                 "has no tensor 'conv.weight.exp_avg'"));
  CHECK(contains(bad_tensors([](Checkpoint& c) { c.moments.clear(); }), "has no tensor"));
  CHECK(contains(bad_tensors([](Checkpoint& c) { c.weights[0].values = Tensor({7}); }),
                 "'conv.weight' of the checkpoint is (7), the model's is (5, 1, 3, 3)"));
  CHECK(contains(bad_tensors([](Checkpoint& c) {
                   c.weights.push_back({"more", Tensor({1})});
                 }),
                 "'more' is none of the model"));
  CHECK(contains(bad_tensors([](Checkpoint& c) { c.weights.push_back(c.weights[0]); }), "twice"));
}

TEST_CASE("a schedule with an end is laid out for the epochs of the whole fit", "[parallel]") {
  const Dataset train = test::resume_data();
  World world({.devices = cpus(1)});
  const TrainerOptions options{.schedule = CosineDecay{}};
  Trainer trainer(world, test::dropout_net(), SoftmaxCrossEntropy{}, Sgd{}, options);
  trainer.fit(train, {.epochs = 2, .batch_size = 64});
  const Checkpoint two = trainer.checkpoint();
  Trainer longer(world, test::dropout_net(), SoftmaxCrossEntropy{}, Sgd{}, options);
  longer.restore(two);
  CHECK(
      contains(message_of<UsageError>([&] { longer.fit(train, {.epochs = 3, .batch_size = 64}); }),
               "the epochs of the schedule is 3 and was 2"));
  // It is over already: nothing is left to run.
  CHECK(longer.fit(train, {.epochs = 2, .batch_size = 64}).epochs == 0);
  CHECK(longer.model().arena() == trainer.model().arena());
}

TEST_CASE("infinite and missing figures come back from the files", "[parallel]") {
  const Scratch scratch;
  Checkpoint checkpoint = test::train_for({}, cpus(1), 1);
  checkpoint.sums.loss = std::numeric_limits<double>::infinity();
  checkpoint.sums.ema = std::numeric_limits<double>::quiet_NaN();
  save_checkpoint(checkpoint, scratch / "c");
  const Checkpoint back = load_checkpoint(scratch / "c");
  CHECK(back.sums.loss == checkpoint.sums.loss);
  CHECK(std::isnan(back.sums.ema));
  CHECK(back.fit.best_loss == std::numeric_limits<double>::infinity());
}
