// What changes from step to step, kept in device memory so that a captured step needs no new
// arguments.
#pragma once

#include <cstdint>

namespace lockstep {

/// One per replica, equal on all of them. The opening operation of a step fills in the batch and
/// the learning rate; the closing ones set the norm and advance the counters.
struct StepState {
  std::uint64_t step = 0;   ///< optimizer updates done; Adam's t of the next one is step + 1
  std::uint32_t epoch = 0;  ///< from 0
  std::uint32_t step_in_epoch = 0;  ///< from 0
  std::uint32_t first_sample = 0;   ///< where the global batch begins in the epoch's permutation
  std::uint32_t real_samples = 0;   ///< samples that the global batch really has
  float inverse_samples = 0;        ///< 1 / real_samples: the weight of a sample in the gradient
  float learning_rate = 0;
  float grad_norm = 0;    ///< of the reduced gradient, before clipping
  float clip_factor = 1;  ///< what the optimizer multiplies the gradient by
  std::uint32_t frozen =
      0;  ///< sticky: a norm was not finite, updates are void until the host clears it
  std::uint32_t stop = 0;  ///< this replica was asked to stop, as seen when the step opened
};

/// Sums over the steps of an epoch, kept where StepState is; the moving average goes on over
/// epochs.
struct EpochSums {
  double loss = 0;     ///< of the samples' losses
  double correct = 0;  ///< right predictions
  double samples = 0;
  double reg_loss = 0;  ///< of the steps' L2 terms
  double steps = 0;
  double skipped = 0;  ///< steps without an update, as their gradient was not finite
  double ema = 0;  ///< moving average (0.9) of the steps' mean loss, L2 term included; not debiased
  double ema_weight = 0;  ///< 1 - 0.9^steps: ema / ema_weight is debiased
  double last_loss = 0;   ///< mean loss of the last step, L2 term included
  double stop =
      0;  ///< the last step's StepTail::stop: above 0 on all replicas when one was asked to stop
};

/// The last 64 bytes of the gradient arena: they travel with the last bucket. All are sums over the
/// samples of the global batch after the reduction.
struct StepTail {
  float loss = 0;     ///< sum of the samples' losses
  float correct = 0;  ///< predictions that were right; exact up to 2^24
  float stop = 0;     ///< replicas that were asked to stop
  float unused[13] = {};
};
static_assert(sizeof(StepTail) == 64);
inline constexpr std::int64_t kTailFloats = sizeof(StepTail) / sizeof(float);

/// Sums over one chunk of an evaluation, kept where StepState is.
struct ChunkSums {
  double loss = 0;           ///< of the samples' losses
  std::int64_t correct = 0;  ///< right predictions
};

}  // namespace lockstep
