// Optimizer updates over a whole arena: one fused pass, no layer in sight.
//
// params, grads and moments are arenas of one layout in device memory, `count` floats, aligned to
// kAlignment. The learning rate, the step number and the clip factor come from `state`. With
// state->frozen every call leaves parameters and moments as they are. Deterministic; each element
// depends on its own index alone, so a range of the arena may be updated apart.
#pragma once

#include <cstdint>

#include "lockstep/core/context.h"
#include "lockstep/core/step_state.h"

namespace lockstep {

/// Where Adam's epsilon stands.
enum class EpsilonPlace {
  outside,  ///< PyTorch's: lr * m_hat / (sqrt(v_hat) + epsilon)
  inside,  ///< TensorFlow 1's, "epsilon hat": lr * sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v)
           ///< + epsilon)
};

struct AdamParameters {
  float beta1 = 0.9F;
  float beta2 = 0.999F;
  float epsilon = 1e-8F;
  EpsilonPlace epsilon_place = EpsilonPlace::outside;
  float weight_decay =
      0;  ///< AdamW's decoupled decay: params -= lr * weight_decay * params, before the step
};

/// Kingma and Ba, "Adam" (ICLR 2015), algorithm 1, and with weight_decay Loshchilov and Hutter,
/// "Decoupled weight decay regularization" (ICLR 2019), algorithm 2. t = state->step + 1, powers in
/// double. `decay_mask` (count), 1 where decay applies and 0 elsewhere, may be null when
/// weight_decay is 0. g = grads * state->clip_factor.
void adam_update(Context& context, const AdamParameters& adam, const StepState* state,
                 const float* grads, const float* decay_mask, float* params, float* first_moment,
                 float* second_moment, std::int64_t count);

struct SgdParameters {
  float momentum = 0;     ///< velocity = momentum * velocity + g; params -= lr * velocity
  bool nesterov = false;  ///< params -= lr * (g + momentum * velocity)
};

/// `velocity` may be null when momentum is 0.
void sgd_update(Context& context, const SgdParameters& sgd, const StepState* state,
                const float* grads, float* params, float* velocity, std::int64_t count);

/// grads += l2_factor[i] * params[i]: the gradient of sum of l2_factor * params^2 / 2. Done once a
/// step, after the reduction, before norm and clipping.
void add_l2_gradient(Context& context, const float* l2_factor, const float* params, float* grads,
                     std::int64_t count);

/// Sets state->grad_norm to the norm of grads (double from the square upwards, over the chunks and
/// the tree of reduce.h); state->clip_factor = min(1, max_norm / norm) when max_norm > 0, else 1;
/// state->frozen = 1 when the norm is not finite (and leaves it set otherwise). One launch on CUDA.
/// Scratch as reduce.h says. Also frozen when `*abandoned` (memory of the host that the device
/// reads; null: never) is not 0: the reduction was cut off, and grads may be anything.
void measure_gradient(Context& context, const float* grads, std::int64_t count, float max_norm,
                      double* scratch, StepState* state, const std::uint32_t* abandoned = nullptr);

/// Ends a step. Unless frozen, adds the tail (sums over the global batch) and `*l2_term` (null: 0)
/// to `sums` and moves state->step and state->step_in_epoch on by one. sums->stop is always set.
/// All pointers are device memory.
void close_step(Context& context, const StepTail* tail, const double* l2_term, StepState* state,
                EpochSums* sums);

}  // namespace lockstep
