// Figures of training and evaluation, as callbacks and results hand them out.
#pragma once

#include <cstdint>

namespace lockstep {

/// An exact pass over a data set: every sample once, the same bits for any number of replicas.
struct EvalStats {
  double loss = 0;           ///< mean data loss over the samples
  std::int64_t correct = 0;  ///< predictions whose largest logit is the target's class
  std::int64_t samples = 0;
  double seconds = 0;  ///< wall time

  /// Fraction of right predictions; 0 without samples.
  [[nodiscard]] double accuracy() const {
    return samples == 0 ? 0 : static_cast<double>(correct) / static_cast<double>(samples);
  }
};

/// One finished epoch.
struct EpochStats {
  int epoch = 0;             ///< from 0
  double learning_rate = 0;  ///< of the epoch's first step
  double train_loss = 0;     ///< data_loss + reg_loss
  double data_loss = 0;  ///< mean over the epoch's samples, each before the update it took part in
  double reg_loss = 0;   ///< mean over the epoch's steps of the L2 term; 0 without L2
  double train_loss_ema =
      0;  ///< moving average (0.9, debiased) of the steps' losses, carried over epochs
  double train_accuracy = 0;  ///< fraction, predictions before the update
  bool has_validation = false;
  double val_loss = 0;
  double val_accuracy = 0;         ///< fraction
  std::int64_t steps = 0;          ///< optimizer steps of this epoch
  std::int64_t skipped_steps = 0;  ///< steps without an update, as their gradient was not finite
  std::int64_t samples = 0;        ///< training samples of this epoch
  double train_seconds = 0;        ///< wall time of the training steps, shuffle included
  double eval_seconds = 0;         ///< wall time of the validation pass
  double seconds = 0;              ///< both

  /// Training samples a second of training time.
  [[nodiscard]] double samples_per_second() const {
    return train_seconds > 0 ? static_cast<double>(samples) / train_seconds : 0;
  }
};

}  // namespace lockstep
