// Optimizer updates and the end of a step: checks and dispatch.
#include "lockstep/kernels/optimize.h"

#include "lockstep/kernels/checks.h"
#include "lockstep/kernels/cpu/kernels.h"
#include "lockstep/kernels/cpu/plain.h"

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
  if (!context.on_cpu()) checks::no_kernel("adam_update", context);
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
  if (!context.on_cpu()) checks::no_kernel("sgd_update", context);
  cpu::kernels(context.cpu_set())
      .optimize.sgd(sgd.momentum, sgd.nesterov, state, grads, params, velocity, count);
}

void add_l2_gradient(Context& context, const float* l2_factor, const float* params, float* grads,
                     std::int64_t count) {
  checks::count("add_l2_gradient", count);
  if (!context.on_cpu()) checks::no_kernel("add_l2_gradient", context);
  cpu::kernels(context.cpu_set()).optimize.add_l2_gradient(l2_factor, params, grads, count);
}

void finish_norm(Context& context, const double* sum_of_squares, float max_norm, StepState* state) {
  if (!context.on_cpu()) checks::no_kernel("finish_norm", context);
  cpu::finish_norm(*sum_of_squares, max_norm, state);
}

void close_step(Context& context, const StepTail* tail, const double* l2_term, StepState* state,
                EpochSums* sums) {
  if (!context.on_cpu()) checks::no_kernel("close_step", context);
  cpu::close_step(*tail, l2_term, state, sums);
}

}  // namespace lockstep
