// Optimizer updates over arenas, all in groups of 16 elements.
//
// A range of an arena must come out with the bits that the whole would give it, and whether a
// multiplication and an addition are fused is the compiler's choice. So the elements after the last
// whole group are padded to one and go through the same loop.
#include "lockstep/core/step_state.h"
#include "lockstep/kernels/cpu/set.h"
#include "lockstep/kernels/cpu/simd.h"

namespace lockstep::cpu::LOCKSTEP_CPU_SET {
namespace {

/// A last group that is not full, in memory of its own.
struct Padded {
  alignas(64) float value[kGroup] = {};
};

LOCKSTEP_INLINE void copy(float* to, const float* from, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = from[i];
}

/// Where the whole groups of `count` elements end.
LOCKSTEP_INLINE std::int64_t whole_groups_end(std::int64_t count) {
  return count / kGroup * kGroup;
}

struct AdamFactors {
  float clip, beta1, rest1, beta2, rest2, step_size, root_scale, epsilon, decay;
};

/// Both places of epsilon are one formula: params -= step_size * m / (sqrt(v) * root_scale +
/// epsilon).
AdamFactors adam_factors(const AdamSettings& adam, const StepState& state) {
  const auto t = static_cast<double>(state.step + 1);
  const double correction1 = 1 - __builtin_pow(static_cast<double>(adam.beta1), t);
  const double correction2 = 1 - __builtin_pow(static_cast<double>(adam.beta2), t);
  const double rate = static_cast<double>(state.learning_rate);
  const double root = __builtin_sqrt(correction2);
  return {.clip = state.clip_factor,
          .beta1 = adam.beta1,
          .rest1 = static_cast<float>(1 - static_cast<double>(adam.beta1)),
          .beta2 = adam.beta2,
          .rest2 = static_cast<float>(1 - static_cast<double>(adam.beta2)),
          .step_size = static_cast<float>(adam.epsilon_inside ? rate * root / correction1
                                                              : rate / correction1),
          .root_scale = adam.epsilon_inside ? 1.0F : static_cast<float>(1 / root),
          .epsilon = adam.epsilon,
          .decay = static_cast<float>(rate * static_cast<double>(adam.weight_decay))};
}

template <bool kDecay>
void adam_groups(AdamFactors f, std::int64_t groups, const float* __restrict grads,
                 const float* __restrict decay_mask, float* __restrict params,
                 float* __restrict first, float* __restrict second) {
  for (std::int64_t i = 0; i < groups * kGroup; ++i) {
    const float g = grads[i] * f.clip;
    const float m = f.beta1 * first[i] + f.rest1 * g;
    const float v = f.beta2 * second[i] + f.rest2 * g * g;
    first[i] = m;
    second[i] = v;
    float p = params[i];
    if constexpr (kDecay) p -= f.decay * decay_mask[i] * p;
    params[i] = p - f.step_size * m / (__builtin_sqrtf(v) * f.root_scale + f.epsilon);
  }
}

template <bool kDecay>
void adam_all(const AdamFactors& factors, const float* grads, const float* decay_mask,
              float* params, float* first, float* second, std::int64_t count) {
  adam_groups<kDecay>(factors, count / kGroup, grads, decay_mask, params, first, second);
  const std::int64_t end = whole_groups_end(count);
  const std::int64_t rest = count - end;
  if (rest == 0) return;
  Padded g, d, p, m, v;
  copy(g.value, grads + end, rest);
  if constexpr (kDecay) copy(d.value, decay_mask + end, rest);
  copy(p.value, params + end, rest);
  copy(m.value, first + end, rest);
  copy(v.value, second + end, rest);
  adam_groups<kDecay>(factors, 1, g.value, d.value, p.value, m.value, v.value);
  copy(params + end, p.value, rest);
  copy(first + end, m.value, rest);
  copy(second + end, v.value, rest);
}

void adam(const AdamSettings& settings, const StepState* state, const float* grads,
          const float* decay_mask, float* params, float* first_moment, float* second_moment,
          std::int64_t count) {
  if (state->frozen != 0) return;
  const AdamFactors factors = adam_factors(settings, *state);
  if (settings.weight_decay != 0) {
    adam_all<true>(factors, grads, decay_mask, params, first_moment, second_moment, count);
  } else {
    adam_all<false>(factors, grads, decay_mask, params, first_moment, second_moment, count);
  }
}

struct SgdFactors {
  float clip, rate, momentum;
};

void plain_groups(SgdFactors f, std::int64_t groups, const float* __restrict grads,
                  float* __restrict params) {
  for (std::int64_t i = 0; i < groups * kGroup; ++i) params[i] -= f.rate * (grads[i] * f.clip);
}

template <bool kNesterov>
void momentum_groups(SgdFactors f, std::int64_t groups, const float* __restrict grads,
                     float* __restrict params, float* __restrict velocity) {
  for (std::int64_t i = 0; i < groups * kGroup; ++i) {
    const float g = grads[i] * f.clip;
    const float v = f.momentum * velocity[i] + g;
    velocity[i] = v;
    params[i] -= f.rate * (kNesterov ? g + f.momentum * v : v);
  }
}

void sgd_groups(SgdFactors f, bool nesterov, std::int64_t groups, const float* grads, float* params,
                float* velocity) {
  if (f.momentum == 0) {
    plain_groups(f, groups, grads, params);
  } else if (nesterov) {
    momentum_groups<true>(f, groups, grads, params, velocity);
  } else {
    momentum_groups<false>(f, groups, grads, params, velocity);
  }
}

void sgd(float momentum, bool nesterov, const StepState* state, const float* grads, float* params,
         float* velocity, std::int64_t count) {
  if (state->frozen != 0) return;
  const SgdFactors factors{
      .clip = state->clip_factor, .rate = state->learning_rate, .momentum = momentum};
  sgd_groups(factors, nesterov, count / kGroup, grads, params, velocity);
  const std::int64_t end = whole_groups_end(count);
  const std::int64_t rest = count - end;
  if (rest == 0) return;
  Padded g, p, v;
  copy(g.value, grads + end, rest);
  copy(p.value, params + end, rest);
  if (momentum != 0) copy(v.value, velocity + end, rest);
  sgd_groups(factors, nesterov, 1, g.value, p.value, v.value);
  copy(params + end, p.value, rest);
  if (momentum != 0) copy(velocity + end, v.value, rest);
}

void add_l2_groups(std::int64_t groups, const float* __restrict factor,
                   const float* __restrict params, float* __restrict grads) {
  for (std::int64_t i = 0; i < groups * kGroup; ++i) grads[i] += factor[i] * params[i];
}

void add_l2_gradient(const float* factor, const float* params, float* grads, std::int64_t count) {
  add_l2_groups(count / kGroup, factor, params, grads);
  const std::int64_t end = whole_groups_end(count);
  const std::int64_t rest = count - end;
  if (rest == 0) return;
  Padded f, p, g;
  copy(f.value, factor + end, rest);
  copy(p.value, params + end, rest);
  copy(g.value, grads + end, rest);
  add_l2_groups(1, f.value, p.value, g.value);
  copy(grads + end, g.value, rest);
}

}  // namespace

const OptimizeKernels optimize_kernels = {
    .adam = adam, .sgd = sgd, .add_l2_gradient = add_l2_gradient};

}  // namespace lockstep::cpu::LOCKSTEP_CPU_SET
