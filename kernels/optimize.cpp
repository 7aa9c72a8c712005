// Optimizer updates and the end of a step: checks and dispatch.
#include "lockstep/kernels/optimize.h"

#include <cmath>

#include "lockstep/config.h"
#include "lockstep/kernels/checks.h"
#include "lockstep/kernels/cpu/kernels.h"
#include "lockstep/kernels/cuda/kernels.h"
#include "lockstep/kernels/reduce.h"
#include "lockstep/kernels/step_math.h"

namespace lockstep {
namespace {

// Each condition is written so that NaN fails.
void check_adam(const AdamParameters& adam, const float* decay_mask) {
  if (!(adam.beta1 >= 0 && adam.beta1 < 1 && adam.beta2 >= 0 && adam.beta2 < 1)) {
    throw UsageError(message("adam_update: beta1 is ", adam.beta1, " and beta2 is ", adam.beta2,
                             "; both must be at least 0 and below 1"));
  }
  if (!(adam.epsilon > 0)) {
    throw UsageError(
        message("adam_update: epsilon is ", adam.epsilon,
                "; it must be above 0, or a parameter without gradient becomes 0 / 0"));
  }
  if (!(adam.weight_decay >= 0)) {
    throw UsageError(
        message("adam_update: weight_decay is ", adam.weight_decay, "; it must be 0 or more"));
  }
  if (adam.weight_decay > 0 && decay_mask == nullptr) {
    throw UsageError(message("adam_update: weight_decay is ", adam.weight_decay,
                             " and there is no decay mask; give one that says what decays"));
  }
}

void check_sgd(const SgdParameters& sgd, const float* velocity) {
  if (!(sgd.momentum >= 0 && sgd.momentum < 1)) {
    throw UsageError(
        message("sgd_update: momentum is ", sgd.momentum, "; it must be at least 0 and below 1"));
  }
  if (sgd.nesterov && sgd.momentum == 0) {
    throw UsageError("sgd_update: nesterov needs momentum above 0");
  }
  if (sgd.momentum > 0 && velocity == nullptr) {
    throw UsageError(message("sgd_update: momentum is ", sgd.momentum,
                             " and there is no velocity; give its arena"));
  }
}

}  // namespace

void adam_update(Context& context, const AdamParameters& adam, const StepState* state,
                 const float* grads, const float* decay_mask, float* params, float* first_moment,
                 float* second_moment, std::int64_t count) {
  check_adam(adam, decay_mask);
  checks::count("adam_update", count);
  if constexpr (kHasCuda) {
    if (!context.on_cpu()) {
      return cuda::adam_update(context, adam, state, grads, decay_mask, params, first_moment,
                               second_moment, count);
    }
  }
  const cpu::AdamSettings settings{.beta1 = adam.beta1,
                                   .beta2 = adam.beta2,
                                   .epsilon = adam.epsilon,
                                   .epsilon_inside = adam.epsilon_place == EpsilonPlace::inside,
                                   .weight_decay = adam.weight_decay};
  cpu::kernels(context.cpu_set())
      .optimize.adam(settings, state, grads, decay_mask, params, first_moment, second_moment,
                     count);
}

void sgd_update(Context& context, const SgdParameters& sgd, const StepState* state,
                const float* grads, float* params, float* velocity, std::int64_t count) {
  check_sgd(sgd, velocity);
  checks::count("sgd_update", count);
  if constexpr (kHasCuda) {
    if (!context.on_cpu()) {
      return cuda::sgd_update(context, sgd, state, grads, params, velocity, count);
    }
  }
  cpu::kernels(context.cpu_set())
      .optimize.sgd(sgd.momentum, sgd.nesterov, state, grads, params, velocity, count);
}

void add_l2_gradient(Context& context, const float* l2_factor, const float* params, float* grads,
                     std::int64_t count) {
  checks::count("add_l2_gradient", count);
  if constexpr (kHasCuda) {
    if (!context.on_cpu()) return cuda::add_l2_gradient(context, l2_factor, params, grads, count);
  }
  cpu::kernels(context.cpu_set()).optimize.add_l2_gradient(l2_factor, params, grads, count);
}

void measure_gradient(Context& context, const float* grads, std::int64_t count, float max_norm,
                      double* scratch, StepState* state, const std::uint32_t* abandoned) {
  checks::count("measure_gradient", count);
  if constexpr (kHasCuda) {
    if (!context.on_cpu()) {
      return cuda::measure_gradient(context, grads, count, max_norm, scratch, state, abandoned);
    }
  }
  double sum_of_squares = 0;
  cpu::kernels(context.cpu_set())
      .reduce.sum_of_squares(grads, count, kSumChunk, scratch + kSumTickets, &sum_of_squares);
  set_norm(static_cast<float>(std::sqrt(sum_of_squares)), max_norm, *state);
  if (abandoned != nullptr && *static_cast<const volatile std::uint32_t*>(abandoned) != 0) {
    state->frozen = 1;
  }
}

void close_step(Context& context, const StepTail* tail, const double* l2_term, StepState* state,
                EpochSums* sums) {
  if constexpr (kHasCuda) {
    if (!context.on_cpu()) return cuda::close_step(context, tail, l2_term, state, sums);
  }
  end_step(*tail, l2_term == nullptr ? 0 : *l2_term, *state, *sums);
}

}  // namespace lockstep
