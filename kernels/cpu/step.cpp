// The bookkeeping of a step: what it opens with, where its samples are, how it ends.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "lockstep/kernels/cpu/plain.h"

namespace lockstep::cpu {

void open_step(const EpochTables& tables, std::uint32_t* stop_request, StepState* state) {
  const std::int64_t step = state->step_in_epoch;
  const std::int64_t first = std::min(step * tables.batch_size, tables.samples);
  const std::int64_t real = std::min(tables.batch_size, tables.samples - first);
  const bool has_rate = tables.learning_rates != nullptr && step < tables.steps;
  state->first_sample = static_cast<std::uint32_t>(first);
  state->real_samples = static_cast<std::uint32_t>(real);
  state->inverse_samples = real > 0 ? 1.0F / static_cast<float>(real) : 0.0F;
  state->learning_rate = has_rate ? tables.learning_rates[step] : 0.0F;
  state->grad_norm = 0;
  state->clip_factor = 1;
  state->stop =
      stop_request == nullptr ? 0 : std::atomic_ref(*stop_request).load(std::memory_order_relaxed);
}

void gather_places(const DeviceSamples& samples, const EpochTables& tables, const StepState& state,
                   std::int64_t first_place, std::int64_t end_place, std::int64_t places,
                   const GatheredBlock& out) {
  const std::int64_t end = std::min<std::int64_t>(end_place, state.real_samples);
  const std::int64_t row = samples.soft_classes;
  for (std::int64_t n = 0; n < places; ++n) {
    const std::int64_t place = first_place + n;
    std::int32_t index = -1;
    if (place < end) {
      const std::int64_t visit = state.first_sample + place;
      index = tables.permutation != nullptr ? tables.permutation[visit]
                                            : static_cast<std::int32_t>(visit);
    }
    out.sample_index[n] = index;
    if (samples.classes != nullptr) out.classes[n] = index < 0 ? 0 : samples.classes[index];
    if (samples.soft != nullptr) {
      if (index < 0) {
        std::fill_n(out.soft + n * row, row, 0.0F);
      } else {
        std::copy_n(samples.soft + index * row, row, out.soft + n * row);
      }
    }
  }
}

void finish_norm(double sum_of_squares, float max_norm, StepState* state) {
  const auto norm = static_cast<float>(std::sqrt(sum_of_squares));
  state->grad_norm = norm;
  state->clip_factor = 1;
  if (!std::isfinite(norm)) {
    state->frozen = 1;
  } else if (max_norm > 0 && norm > max_norm) {
    state->clip_factor = max_norm / norm;
  }
}

void close_step(const StepTail& tail, const double* l2_term, StepState* state, EpochSums* sums) {
  constexpr double kKeep = 0.9;
  sums->stop = tail.stop;
  if (state->frozen != 0) return;
  const double regularization = l2_term == nullptr ? 0 : *l2_term;
  const double samples = state->real_samples;
  const double mean = (samples > 0 ? tail.loss / samples : 0) + regularization;
  sums->loss += tail.loss;
  sums->correct += tail.correct;
  sums->samples += samples;
  sums->reg_loss += regularization;
  sums->steps += 1;
  sums->ema = kKeep * sums->ema + (1 - kKeep) * mean;
  sums->ema_weight = kKeep * sums->ema_weight + (1 - kKeep);
  sums->last_loss = mean;
  state->step += 1;
  state->step_in_epoch += 1;
}

}  // namespace lockstep::cpu
