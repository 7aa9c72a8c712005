// What is not finite, and replicas that are no longer equal, on GPUs.
#include "parallel/cuda/gpus.h"
#include "parallel/replica_checks_cases.h"

namespace lockstep {
namespace {

using test::gpus;
using test::possible;

TEST_CASE("GPUs: a value that is not finite is named with step, rank and layer") {
  for (const int count : possible({1, 3})) test::nan_is_named(gpus(count));
}

TEST_CASE("GPUs: a sample that is not finite is named, or its step is skipped") {
  for (const int count : possible({1, 2})) test::bad_sample_is_named_or_skipped(gpus(count));
}

TEST_CASE("GPUs: weights that are not finite end training") {
  for (const int count : possible({1, 3})) test::bad_weights_are_named(gpus(count));
}

TEST_CASE("GPUs: an epoch without a finite step is an error") {
  for (const int count : possible({1, 2})) test::nothing_left_is_an_error(gpus(count));
}

TEST_CASE("GPUs: a flipped bit in one replica ends training with step, tensor and ranks") {
  for (const int count : possible({2, 3})) test::flipped_bit_is_named(gpus(count));
}

TEST_CASE("GPUs: recorded steps and streamed data skip the same steps") {
  std::vector<std::vector<float>> weights;
  for (const bool graph : {false, true}) {
    for (const Residence residence : {Residence::resident, Residence::streamed}) {
      for (const int count : possible({1, 2})) {
        TrainerOptions options = test::eager(OnNonfinite::skip);
        options.graph = graph;
        options.residence = residence;
        options.reduce = Reduce::invariant;
        World world({.devices = gpus(count)});
        Trainer trainer(world, test::small_net(), SoftmaxCrossEntropy{}, Adam{.lr = 0.005F},
                        options);
        // Skipped steps in the first window, at its end and behind it.
        Tensor pixels(Shape{600, 1, 8, 8});
        for (std::int64_t i = 0; i < 600 * 64; ++i) {
          pixels.data()[i] = static_cast<float>(i % 97) / 97;
        }
        for (const int sample : {17, 300, 599}) {
          pixels.data()[sample * 64] = std::numeric_limits<float>::quiet_NaN();
        }
        std::vector<std::int32_t> labels(600);
        for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<int>(i % 5);
        std::vector<EpochStats> epochs;
        trainer.on_epoch([&](const EpochStats& epoch) { epochs.push_back(epoch); });
        trainer.fit(Dataset::from_floats("bad", pixels, labels, 5), {.epochs = 2, .batch_size = 8});
        REQUIRE(epochs.size() == 2);
        for (const EpochStats& epoch : epochs) {
          CHECK(epoch.skipped_steps >= 2);
          CHECK(epoch.skipped_steps <= 3);
          CHECK(epoch.steps + epoch.skipped_steps == 75);
        }
        weights.push_back(trainer.model().arena());
        CHECK(weights.back() == weights.front());
        CHECK(test::all_finite(weights.back()));
      }
    }
  }
}

}  // namespace
}  // namespace lockstep
