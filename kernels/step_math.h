// Internal. The bookkeeping of a step, as both twins do it: constexpr, so that device code may call
// it.
#pragma once

#include "lockstep/core/step_state.h"
#include "lockstep/kernels/gather.h"

namespace lockstep {

/// Which part of an epoch's permutation a step visits.
struct Visits {
  std::int64_t first, count;
};

constexpr Visits visits_of(const EpochTables& tables, std::int64_t step) {
  const std::int64_t wanted = step * tables.batch_size;
  const std::int64_t first = wanted < tables.samples ? wanted : tables.samples;
  const std::int64_t left = tables.samples - first;
  return {first, left < tables.batch_size ? left : tables.batch_size};
}

/// What open_step says, but for `stop`.
constexpr void set_batch(const EpochTables& tables, StepState& state) {
  const Visits visits = visits_of(tables, state.step_in_epoch);
  const bool has_rate = tables.learning_rates != nullptr && state.step_in_epoch < tables.steps;
  state.first_sample = static_cast<std::uint32_t>(visits.first);
  state.real_samples = static_cast<std::uint32_t>(visits.count);
  state.inverse_samples = visits.count > 0 ? 1.0F / static_cast<float>(visits.count) : 0.0F;
  state.learning_rate = has_rate ? tables.learning_rates[state.step_in_epoch] : 0.0F;
  state.grad_norm = 0;
  state.clip_factor = 1;
}

/// What measure_gradient says of the norm.
constexpr void set_norm(float norm, float max_norm, StepState& state) {
  constexpr float kLargest = 3.40282347e+38F;
  state.grad_norm = norm;
  state.clip_factor = 1;
  if (!(norm <= kLargest)) {
    state.frozen = 1;  // infinite or NaN
  } else if (max_norm > 0 && norm > max_norm) {
    state.clip_factor = max_norm / norm;
  }
}

/// What close_step says.
constexpr void end_step(const StepTail& tail, double l2_term, StepState& state, EpochSums& sums) {
  constexpr double kKeep = 0.9;
  sums.stop = tail.stop;
  if (state.frozen != 0) return;
  const double samples = state.real_samples;
  const double mean = (samples > 0 ? tail.loss / samples : 0) + l2_term;
  sums.loss += tail.loss;
  sums.correct += tail.correct;
  sums.samples += samples;
  sums.reg_loss += l2_term;
  sums.steps += 1;
  sums.ema = kKeep * sums.ema + (1 - kKeep) * mean;
  sums.ema_weight = kKeep * sums.ema_weight + (1 - kKeep);
  sums.last_loss = mean;
  state.step += 1;
  state.step_in_epoch += 1;
}

}  // namespace lockstep
