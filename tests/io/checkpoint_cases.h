// A small checkpoint for tests of files.
#pragma once

#include <cstdint>

#include "lockstep/io/checkpoint.h"

namespace lockstep::test {

/// At `step`, with numbers that differ from step to step.
inline Checkpoint small_checkpoint(std::uint64_t step) {
  Checkpoint checkpoint;
  checkpoint.recipe.model = {"fc: linear 2->3"};
  checkpoint.recipe.optimizer = "adam lr=0.001";
  checkpoint.recipe.schedule = "constant";
  checkpoint.recipe.seed = 18446744073709551615U;
  checkpoint.recipe.batch_size = 64;
  checkpoint.recipe.last_batch = "keep";
  checkpoint.recipe.reduce = "fast";
  checkpoint.recipe.bucket_bytes = 1024;
  checkpoint.recipe.l2 = 1e-3F;
  checkpoint.recipe.clip_norm = 0.1F;
  checkpoint.recipe.precision = "fp32";
  checkpoint.recipe.data = "digits \"of\" a name";
  checkpoint.recipe.samples = 540;
  checkpoint.recipe.data_sha256 = "abc";
  checkpoint.execution = {"0.1", "cpu", "avx2", 2, 2, 32, 16};
  checkpoint.step.step = step;
  checkpoint.step.epoch = static_cast<std::uint32_t>(step / 9);
  checkpoint.step.step_in_epoch = static_cast<std::uint32_t>(step % 9);
  const auto number = static_cast<double>(step);
  checkpoint.sums.loss = 0.1 + number;
  checkpoint.sums.correct = 3 * number;
  checkpoint.sums.ema = number / 3;
  checkpoint.sums.ema_weight = 1e-300;
  checkpoint.train_seconds = 1.5;
  checkpoint.fit = {1, 4, 0.25, 2};
  const auto value = static_cast<float>(step);
  checkpoint.weights = {{"fc.weight", Tensor({3, 2}, {1, 2, 3, 4, 5, value})},
                        {"fc.bias", Tensor({3}, {value, -0.0F, 1e-40F})}};
  checkpoint.moments = {{"fc.weight.exp_avg", Tensor({3, 2}, {6, 5, 4, 3, 2, value})},
                        {"fc.bias.exp_avg", Tensor({3}, {value, 1, 2})}};
  checkpoint.best_weights = {{"fc.weight", Tensor({3, 2}, {9, 9, 9, 9, 9, value})},
                             {"fc.bias", Tensor({3}, {7, 8, value})}};
  checkpoint.config = R"({"--lr":"0.001","model":"article"})";
  checkpoint.parent = {"step-00000001", "def"};
  return checkpoint;
}

}  // namespace lockstep::test
