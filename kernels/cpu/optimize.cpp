// Optimizer updates over arenas, element by element.
//
// A range of an arena must come out with the bits that the whole would give it, wherever the
// compiler's vectors end. So no multiplication and addition are left for it to fuse or not:
// multiply_add says where they are one, and every operation then rounds the same in any loop.
#include "lockstep/core/step_state.h"
#include "lockstep/kernels/cpu/set.h"
#include "lockstep/kernels/cpu/simd.h"

namespace lockstep::cpu::LOCKSTEP_CPU_SET {
namespace {

/// a * b + c, rounded once where the instruction set has that, else twice.
LOCKSTEP_INLINE float multiply_add(float a, float b, float c) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}

struct AdamFactors {
  float clip, beta1, rest1, beta2, rest2, step_size, root_scale, epsilon, decay;
};

/// Both places of epsilon are one formula: params -= step_size * m / (sqrt(v) * root_scale +
/// epsilon).
AdamFactors adam_factors(const AdamSettings& adam, const StepState& state) {
  const auto t = static_cast<double>(state.step + 1);
  const double beta1 = adam.beta1;
  const double beta2 = adam.beta2;
  const double correction1 = 1 - __builtin_pow(beta1, t);
  const double correction2 = 1 - __builtin_pow(beta2, t);
  const double rate = state.learning_rate;
  const double root = __builtin_sqrt(correction2);
  const double step_size = adam.epsilon_inside ? rate * root / correction1 : rate / correction1;
  return {.clip = state.clip_factor,
          .beta1 = adam.beta1,
          .rest1 = static_cast<float>(1 - beta1),
          .beta2 = adam.beta2,
          .rest2 = static_cast<float>(1 - beta2),
          .step_size = static_cast<float>(step_size),
          .root_scale = adam.epsilon_inside ? 1.0F : static_cast<float>(1 / root),
          .epsilon = adam.epsilon,
          .decay = static_cast<float>(rate * adam.weight_decay)};
}

template <bool kDecay>
void adam_all(AdamFactors f, const float* __restrict grads, const float* __restrict decay_mask,
              float* __restrict params, float* __restrict first, float* __restrict second,
              std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float g = grads[i] * f.clip;
    const float m = multiply_add(f.beta1, first[i], f.rest1 * g);
    const float v = multiply_add(f.beta2, second[i], f.rest2 * g * g);
    first[i] = m;
    second[i] = v;
    float p = params[i];
    if constexpr (kDecay) p = multiply_add(-f.decay * decay_mask[i], p, p);
    params[i] = p - f.step_size * m / multiply_add(__builtin_sqrtf(v), f.root_scale, f.epsilon);
  }
}

void adam(const AdamSettings& settings, const StepState* state, const float* grads,
          const float* decay_mask, float* params, float* first_moment, float* second_moment,
          std::int64_t count) {
  if (state->frozen != 0) return;
  const AdamFactors factors = adam_factors(settings, *state);
  if (settings.weight_decay != 0) {
    adam_all<true>(factors, grads, decay_mask, params, first_moment, second_moment, count);
  } else {
    adam_all<false>(factors, grads, nullptr, params, first_moment, second_moment, count);
  }
}

void sgd_plain(const StepState& state, const float* __restrict grads, float* __restrict params,
               std::int64_t count) {
  const float rate = state.learning_rate;
  const float clip = state.clip_factor;
  for (std::int64_t i = 0; i < count; ++i) {
    params[i] = multiply_add(-rate, grads[i] * clip, params[i]);
  }
}

template <bool kNesterov>
void sgd_momentum(float momentum, const StepState& state, const float* __restrict grads,
                  float* __restrict params, float* __restrict velocity, std::int64_t count) {
  const float rate = state.learning_rate;
  const float clip = state.clip_factor;
  for (std::int64_t i = 0; i < count; ++i) {
    const float g = grads[i] * clip;
    const float v = multiply_add(momentum, velocity[i], g);
    velocity[i] = v;
    params[i] = multiply_add(-rate, kNesterov ? multiply_add(momentum, v, g) : v, params[i]);
  }
}

void sgd(float momentum, bool nesterov, const StepState* state, const float* grads, float* params,
         float* velocity, std::int64_t count) {
  if (state->frozen != 0) return;
  if (momentum == 0) {
    sgd_plain(*state, grads, params, count);
  } else if (nesterov) {
    sgd_momentum<true>(momentum, *state, grads, params, velocity, count);
  } else {
    sgd_momentum<false>(momentum, *state, grads, params, velocity, count);
  }
}

void add_l2_gradient(const float* __restrict factor, const float* __restrict params,
                     float* __restrict grads, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    grads[i] = multiply_add(factor[i], params[i], grads[i]);
  }
}

}  // namespace

const OptimizeKernels optimize_kernels = {
    .adam = adam, .sgd = sgd, .add_l2_gradient = add_l2_gradient};

}  // namespace lockstep::cpu::LOCKSTEP_CPU_SET
