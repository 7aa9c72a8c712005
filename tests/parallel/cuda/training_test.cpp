// Training on GPUs: what it must have in common with training on a CPU, with other numbers of GPUs,
// and with other ways of giving a GPU the same step.
#include <memory>

#include "lockstep/data/permutation.h"
#include "lockstep/parallel/replica.h"

#include "parallel/cuda/gpus.h"

namespace lockstep {
namespace {

using test::Outcome;
using test::possible;
using test::relative_difference;
using test::train_small;

const TrainerOptions kOptions{.seed = 11,
                              .bucket_bytes = 1024,
                              .schedule = ExponentialDecay{},
                              .l2 = 1e-3F,
                              .clip_norm = 1.0F};

TEST_CASE("a GPU trains like a CPU: 20 steps of SGD") {
  TrainerOptions options{.seed = 3};
  const auto train = [&](const Devices& devices) {
    World world({.devices = devices});
    Trainer trainer(world, test::small_net(), SoftmaxCrossEntropy{}, Sgd{.lr = 0.05}, options);
    trainer.begin(test::small_data(), {.batch_size = 64});
    CHECK(trainer.run_steps(20) == 20);
    return trainer.model().arena();
  };
  const std::vector<float> cpu = train(parse_devices("cpu:1"));
  for (const int count : possible({1, 2, 4})) {
    INFO(count << " GPUs");
    CHECK(relative_difference(train(test::gpus(count)), cpu) <= 1e-4);
  }
}

TEST_CASE("a GPU trains like a CPU: Adam's losses and accuracy, evaluation included") {
  const Outcome cpu = train_small(parse_devices("cpu:1"), kOptions, 4);
  for (const int count : possible({1, 2, 4, 8})) {
    INFO(count << " GPUs");
    const Outcome gpu = train_small(test::gpus(count), kOptions, 4);
    REQUIRE(gpu.epochs.size() == cpu.epochs.size());
    for (std::size_t i = 0; i < cpu.epochs.size(); ++i) {
      CHECK(gpu.epochs[i].steps == cpu.epochs[i].steps);
      CHECK(gpu.epochs[i].samples == cpu.epochs[i].samples);
      CHECK(gpu.epochs[i].learning_rate == cpu.epochs[i].learning_rate);
      CHECK(gpu.epochs[i].train_loss == Approx(cpu.epochs[i].train_loss).epsilon(1e-3));
      CHECK(gpu.epochs[i].train_loss_ema == Approx(cpu.epochs[i].train_loss_ema).epsilon(1e-3));
      CHECK(gpu.epochs[i].reg_loss == Approx(cpu.epochs[i].reg_loss).epsilon(1e-3));
      CHECK(gpu.epochs[i].val_loss == Approx(cpu.epochs[i].val_loss).epsilon(1e-2));
      CHECK(std::abs(gpu.epochs[i].val_accuracy - cpu.epochs[i].val_accuracy) <= 0.011);
    }
    CHECK(gpu.epochs.back().train_loss < gpu.epochs.front().train_loss);
  }
}

TEST_CASE("invariant mode gives the same bits for 1, 2, 4 and 8 GPUs") {
  TrainerOptions options = kOptions;
  options.reduce = Reduce::invariant;
  for (const Sequential& model : {test::small_net(), test::spanning_net()}) {
    const Outcome one = train_small(test::gpus(1), options, 2, model);
    CHECK(one.epochs[1].train_loss < one.epochs[0].train_loss);
    for (const int count : possible({2, 4, 8})) {
      INFO("weights differ between 1 GPU and " << count);
      const Outcome other = train_small(test::gpus(count), options, 2, model);
      CHECK(other.weights == one.weights);
      for (std::size_t i = 0; i < one.epochs.size(); ++i) {
        CHECK(other.epochs[i].train_loss == one.epochs[i].train_loss);
        CHECK(other.epochs[i].val_loss == one.epochs[i].val_loss);
        CHECK(other.epochs[i].val_accuracy == one.epochs[i].val_accuracy);
      }
    }
  }
}

TEST_CASE("shards computed at once and one after another train alike") {
  TrainerOptions options = kOptions;
  options.reduce = Reduce::invariant;
  const Outcome at_once = train_small(test::gpus(1), options, 2, test::spanning_net());
  options.fuse = false;
  const Outcome one_by_one = train_small(test::gpus(1), options, 2, test::spanning_net());
  CHECK(relative_difference(at_once.weights, one_by_one.weights) <= 1e-3);
  CHECK(at_once.epochs.back().train_loss ==
        Approx(one_by_one.epochs.back().train_loss).epsilon(1e-3));
  CHECK(at_once.epochs.back().samples == one_by_one.epochs.back().samples);
}

TEST_CASE("a recorded step gives the bits of its operations one by one") {
  for (const Reduce reduce : {Reduce::fast, Reduce::invariant}) {
    for (const int count : possible({1, 4})) {
      TrainerOptions options = kOptions;
      options.reduce = reduce;
      const Outcome recorded = train_small(test::gpus(count), options, 1);
      options.graph = false;
      const Outcome eager = train_small(test::gpus(count), options, 1);
      INFO(count << " GPUs");
      CHECK(recorded.weights == eager.weights);
      CHECK(recorded.epochs.back().train_loss == eager.epochs.back().train_loss);
    }
  }
}

TEST_CASE("fused layers train like the layers one by one") {
  for (const Reduce reduce : {Reduce::fast, Reduce::invariant}) {
    TrainerOptions options = kOptions;
    options.reduce = reduce;
    const Outcome fused = train_small(test::gpus(1), options);
    options.fuse = false;
    const Outcome single = train_small(test::gpus(1), options);
    CHECK(fused.weights != single.weights);  // or nothing was fused
    CHECK(relative_difference(fused.weights, single.weights) <= 1e-3);
    CHECK(fused.epochs.back().train_loss == Approx(single.epochs.back().train_loss).epsilon(1e-3));
  }
}

TEST_CASE("tf32 rounds the libraries' factors, and only when asked") {
  TrainerOptions options = kOptions;
  options.fuse = false;
  const Outcome fp32 = train_small(test::gpus(1), options, 1);
  options.precision = Precision::tf32;
  const Outcome tf32 = train_small(test::gpus(1), options, 1);
  if (device_info({DeviceKind::cuda, 0}).capability_major >= 8) {
    CHECK(tf32.weights != fp32.weights);
  } else {
    CHECK(tf32.weights == fp32.weights);
  }
  CHECK(relative_difference(tf32.weights, fp32.weights) <= 2e-2);
}

TEST_CASE("streamed data gives the bits of resident data") {
  // More steps and more chunks than two windows, so that a window is filled again.
  const Dataset data = test::striped_images(70 * 16 + 5, 8, 5);
  const Dataset validation = test::striped_images(70 * 256 + 3, 8, 5, 2);
  const Sequential model{Flatten{}, Linear{.in = 64, .out = 12}, ReLU{}, Dropout{.rate = 0.3F},
                         Linear{.in = 12, .out = 5}};
  for (const int count : possible({1, 2})) {
    std::vector<std::vector<float>> weights;
    std::vector<double> losses;
    for (const Residence residence : {Residence::resident, Residence::streamed}) {
      World world({.devices = test::gpus(count)});
      Trainer trainer(world, model, SoftmaxCrossEntropy{}, Adam{.lr = 0.005F},
                      {.seed = 5, .residence = residence});
      trainer.begin(data, {.batch_size = 16});
      trainer.run_steps(13);  // a window may begin in the middle
      trainer.run_epoch();
      trainer.run_steps(40);
      losses.push_back(trainer.evaluate(validation).loss);
      weights.push_back(trainer.model().arena());
    }
    CHECK(weights[0] == weights[1]);
    CHECK(losses[0] == losses[1]);
  }
}

TEST_CASE("one bucket and several give sums that agree") {
  for (const int count : possible({1, 2})) {
    TrainerOptions options = kOptions;
    options.bucket_bytes = 64;  // one for every layer with parameters
    const Outcome several = train_small(test::gpus(count), options);
    options.bucket_bytes = 1 << 20;
    const Outcome one = train_small(test::gpus(count), options);
    CHECK(relative_difference(several.weights, one.weights) <= 1e-4);
  }
}

TEST_CASE("replicas on several GPUs stay equal bit by bit") {
  const Dataset data = test::small_data();
  const Sequential model = test::small_net();
  const ParameterLayout layout(model);
  const Optimizer optimizer = Adam{.lr = 0.005F};
  for (const int count : possible({2, 4, 8})) {
    TrainingState start;
    start.params.resize(static_cast<std::size_t>(layout.size()));
    initialize_parameters(layout, 7, start.params.data());
    start.moments.assign(2, std::vector<float>(start.params.size()));
    const Devices devices = test::gpus(count);
    const Sharding sharding = make_sharding(devices, Reduce::fast, 0, 64, 0);
    const std::vector<float> rates(6, 0.005F);
    std::vector<std::int32_t> order;
    shuffle_epoch(7, 0, data.size(), order);
    std::vector<TrainingState> states(static_cast<std::size_t>(count));

    World world({.devices = devices});
    world.run(count, [&](Communicator& communicator) {
      const auto rank = static_cast<std::size_t>(communicator.rank());
      const ReplicaSetup setup{.model = model,
                               .layout = layout,
                               .optimizer = optimizer,
                               .seed = 7,
                               .bucket_bytes = 1024,
                               .clip_norm = 0.5F};
      Replica replica(devices.list[rank], setup, start);
      replica.begin(data, sharding, communicator);
      replica.open_epoch({order, rates});
      replica.run(communicator, 6, [] {});
      states[rank] = replica.export_state();
      communicator.barrier();
    });
    for (const TrainingState& state : states) {
      CHECK(state.step.step == 6);
      CHECK(state.params == states[0].params);
      CHECK(state.moments == states[0].moments);
      CHECK(state.params != start.params);
    }
  }
}

TEST_CASE("a stop request ends training on GPUs within the windows under way") {
  const Dataset data = test::striped_images(400 * 16, 8, 5);
  World world({.devices = test::gpus(possible({2, 1}).front())});
  Trainer trainer(world, test::small_net(), SoftmaxCrossEntropy{}, Adam{.lr = 0.005F});
  trainer.on_progress([&](const Progress& progress) {
    if (progress.done >= 32) trainer.request_stop();
  });
  const FitResult result = trainer.fit(data, {.epochs = 1, .batch_size = 16});
  CHECK(result.stop_requested);
  CHECK(trainer.step() >= 32);
  CHECK(trainer.step() <= 32 + 4 * 32);
}

TEST_CASE("a gradient that is not finite freezes GPUs before that step") {
  std::vector<float> values(64 * 64, 0.5F);
  values[40 * 64] = std::numeric_limits<float>::infinity();
  const Dataset bad = Dataset::from_floats("bad", Tensor(Shape{64, 1, 8, 8}, values),
                                           std::vector<std::int32_t>(64, 1), 5);
  for (const int count : possible({1, 2})) {
    World world({.devices = test::gpus(count)});
    Trainer trainer(world, test::small_net(), SoftmaxCrossEntropy{}, Adam{.lr = 0.005F});
    CHECK_THROWS_AS(trainer.fit(bad, {.epochs = 1, .batch_size = 8}), NonFiniteError);
    for (const float weight : trainer.model().arena()) REQUIRE(std::isfinite(weight));
    CHECK(trainer.step() < 8);
    // It can go on, with other data.
    CHECK(trainer.fit(test::small_data(), {.epochs = 1, .batch_size = 64}).epochs == 1);
  }
}

}  // namespace
}  // namespace lockstep
