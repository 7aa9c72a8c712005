// Trainings that are cut and resumed, shared by the tests on CPUs and on GPUs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lockstep/io/checkpoint.h"
#include "lockstep/parallel/trainer.h"

#include "support/catch.h"
#include "support/tiny_data.h"

namespace lockstep::test {

/// A training of 20 steps over two uneven epochs and a bit: batches of 64 over 540 samples.
struct Training {
  Optimizer optimizer = Adam{.lr = 0.005};
  TrainerOptions options{.seed = 11, .bucket_bytes = 1024};
};

inline Sequential dropout_net() {
  return {Conv2d{.in = 1, .out = 5, .kernel = 3, .padding = same},
          ReLU{},
          MaxPool2d{.kernel = 2},
          Flatten{},
          Linear{.in = 80, .out = 12},
          ReLU{},
          Dropout{.rate = 0.3F},
          Linear{.in = 12, .out = 5}};
}

inline Dataset resume_data() {
  return striped_images(8 * 64 + 28, 8, 5);
}

inline constexpr BatchOptions kResumeBatches{.batch_size = 64, .epochs = 3};

/// Every figure that does not depend on time.
inline std::vector<double> figures_of(const EpochStats& epoch) {
  return {static_cast<double>(epoch.epoch),
          epoch.learning_rate,
          epoch.train_loss,
          epoch.data_loss,
          epoch.reg_loss,
          epoch.train_loss_ema,
          epoch.train_accuracy,
          static_cast<double>(epoch.steps),
          static_cast<double>(epoch.samples)};
}

/// All bits of training, as far as they go on.
inline void check_equal(const Checkpoint& a, const Checkpoint& b) {
  CHECK(a.step.step == b.step.step);
  CHECK(a.step.epoch == b.step.epoch);
  CHECK(a.step.step_in_epoch == b.step.step_in_epoch);
  CHECK(a.sums.loss == b.sums.loss);
  CHECK(a.sums.correct == b.sums.correct);
  CHECK(a.sums.samples == b.sums.samples);
  CHECK(a.sums.reg_loss == b.sums.reg_loss);
  CHECK(a.sums.ema == b.sums.ema);
  CHECK(a.sums.ema_weight == b.sums.ema_weight);
  CHECK(a.sums.last_loss == b.sums.last_loss);
  const auto check_tensors = [](const auto& left, const auto& right) {
    REQUIRE(left.size() == right.size());
    for (std::size_t i = 0; i < left.size(); ++i) {
      INFO(left[i].name);
      CHECK(left[i].name == right[i].name);
      CHECK(left[i].values.shape() == right[i].values.shape());
      CHECK(left[i].values.values() == right[i].values.values());
    }
  };
  check_tensors(a.weights, b.weights);
  check_tensors(a.moments, b.moments);
  check_tensors(a.best_weights, b.best_weights);
}

/// What `first` devices have reached after `steps` steps.
inline Checkpoint train_for(const Training& training, const Devices& devices, std::int64_t steps) {
  World world({.devices = devices});
  Trainer trainer(world, dropout_net(), SoftmaxCrossEntropy{}, training.optimizer,
                  training.options);
  trainer.begin(resume_data(), kResumeBatches);
  CHECK(trainer.run_steps(steps) == steps);
  return trainer.checkpoint();
}

/// What `devices` make of a checkpoint in `steps` more steps.
inline Checkpoint go_on(const Training& training, const Devices& devices, const Checkpoint& from,
                        std::int64_t steps) {
  World world({.devices = devices});
  Trainer trainer(world, dropout_net(), SoftmaxCrossEntropy{}, training.optimizer,
                  training.options);
  trainer.restore(from);
  trainer.begin(resume_data(), kResumeBatches);
  CHECK(trainer.run_steps(steps) == steps);
  return trainer.checkpoint();
}

/// 20 steps are 10, a checkpoint in `folder`, and 10: in the middle of an epoch, and with 9 at the
/// end of one.
inline void check_20_is_10_and_10(const Training& training, const Devices& devices,
                                  const std::function<std::filesystem::path()>& new_folder) {
  const Checkpoint whole = train_for(training, devices, 20);
  for (const std::int64_t cut : {10, 9}) {
    INFO("cut after " << cut << " steps");
    const std::filesystem::path folder = new_folder();
    save_checkpoint(train_for(training, devices, cut), folder);
    const Checkpoint from = load_checkpoint(folder);
    const Checkpoint resumed = go_on(training, devices, from, 20 - cut);
    check_equal(resumed, whole);
    CHECK(bit_differences(from.execution, resumed.execution, false).empty());
  }
}

}  // namespace lockstep::test
