// Checkpoints on GPUs: cut and resumed is bit for bit what was never cut, and what one backend
// saved the other goes on from.
#include "io/scratch.h"
#include "parallel/cuda/gpus.h"
#include "parallel/resume_cases.h"

namespace lockstep {
namespace {

using test::check_equal;
using test::possible;
using test::Scratch;
using test::Training;

/// One arena after the other.
std::vector<float> values_of(const std::vector<NamedTensor>& tensors) {
  std::vector<float> all;
  for (const NamedTensor& tensor : tensors) {
    all.insert(all.end(), tensor.values.values().begin(), tensor.values.values().end());
  }
  return all;
}

TEST_CASE("GPUs: 20 steps are 10, a checkpoint and 10") {
  const Scratch scratch;
  int folders = 0;
  const auto new_folder = [&] { return scratch / std::to_string(folders++); };
  struct Case {
    Optimizer optimizer;
    Reduce reduce;
    int gpus;
  };
  for (const Case& c :
       {Case{Adam{.lr = 0.005}, Reduce::fast, 2}, Case{AdamW{.lr = 0.005}, Reduce::fast, 1},
        Case{Sgd{.lr = 0.05, .momentum = 0.9F}, Reduce::invariant, 2}}) {
    if (c.gpus > test::gpu_count()) continue;
    INFO(c.optimizer.describe() << " on " << c.gpus << " GPUs");
    test::check_20_is_10_and_10({c.optimizer,
                                 {.seed = 11,
                                  .reduce = c.reduce,
                                  .bucket_bytes = 1024,
                                  .schedule = CosineDecay{.warmup_steps = 4},
                                  .l2 = 1e-3F,
                                  .clip_norm = 1.0F}},
                                test::gpus(c.gpus), new_folder);
  }
}

TEST_CASE("GPUs: invariant mode goes on with the same bits on another number of them") {
  const Training training{Adam{.lr = 0.005}, {.seed = 5, .reduce = Reduce::invariant}};
  const int most = possible({1, 2, 4, 8}).back();
  const Checkpoint whole = test::train_for(training, test::gpus(most), 20);
  const Checkpoint half = test::train_for(training, test::gpus(most), 10);
  for (const int count : possible({1, 4})) {
    INFO(count << " GPUs");
    check_equal(test::go_on(training, test::gpus(count), half, 10), whole);
  }
}

TEST_CASE("GPUs: a checkpoint of one backend is gone on from on the other, within tolerance") {
  const Training training{Sgd{.lr = 0.05, .momentum = 0.9F}, {.seed = 5}};
  const Devices cpu = parse_devices("cpu:1");
  const Devices gpu = test::gpus(1);
  const std::vector<float> whole = values_of(test::train_for(training, cpu, 20).weights);
  for (const auto& [first, second] : {std::pair(cpu, gpu), std::pair(gpu, cpu)}) {
    const Checkpoint half = test::train_for(training, first, 10);
    const Checkpoint resumed = test::go_on(training, second, half, 10);
    CHECK(test::relative_difference(values_of(resumed.weights), whole) <= 1e-4);
    const auto reasons = bit_differences(half.execution, resumed.execution, false);
    REQUIRE_FALSE(reasons.empty());
    CHECK(reasons[0] ==
          resumed.execution.backend + " as backend instead of " + half.execution.backend);
  }
}

TEST_CASE("GPUs: a checkpoint ends the run ahead at its step, and taking it changes no bit") {
  const Dataset data = test::striped_images(44 * 16 + 5, 8, 5);
  World world({.devices = test::gpus(possible({2, 1}).front())});
  const auto weights = [&](const CheckpointTimes& times, bool graph,
                           std::vector<std::uint64_t>& steps) {
    Trainer trainer(world, test::dropout_net(), SoftmaxCrossEntropy{}, Adam{.lr = 0.005},
                    {.graph = graph});
    trainer.on_checkpoint(
        [&](const Checkpoint& checkpoint) { steps.push_back(checkpoint.step.step); }, times);
    trainer.fit(data, {.epochs = 1, .batch_size = 16});
    return trainer.model().arena();
  };
  using Steps = std::vector<std::uint64_t>;
  Steps at_ends;
  const std::vector<float> plain = weights({}, true, at_ends);
  CHECK(at_ends == Steps{0, 45});
  Steps by_number;
  CHECK(weights({.every_steps = 20}, true, by_number) == plain);
  CHECK(by_number == Steps{0, 20, 40, 45});
  // Step by step the host is close behind, and a time that is always over shows.
  Steps by_time;
  CHECK(weights({.every_seconds = 1e-9}, false, by_time) == plain);
  CHECK(by_time.size() > 4);
}

}  // namespace
}  // namespace lockstep
