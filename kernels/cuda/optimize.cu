// Optimizer updates over arenas, four elements to a thread, and the norm of the gradient.
#include "lockstep/core/cuda/runtime.h"
#include "lockstep/kernels/cuda/chunk_sums.h"
#include "lockstep/kernels/cuda/elements.h"
#include "lockstep/kernels/cuda/kernels.h"
#include "lockstep/kernels/step_math.h"

namespace lockstep::cuda {
namespace {

/// What an Adam update needs beside the elements; both places of epsilon are one formula:
/// params -= step_size * m / (sqrt(v) * root_scale + epsilon).
struct AdamFactors {
  float clip, beta1, rest1, beta2, rest2, step_size, root_scale, epsilon, decay;
};

__device__ AdamFactors adam_factors(const AdamParameters& adam, const StepState& state) {
  const auto t = static_cast<double>(state.step + 1);
  const bool inside = adam.epsilon_place == EpsilonPlace::inside;
  const double correction1 = 1 - pow(static_cast<double>(adam.beta1), t);
  const double root = sqrt(1 - pow(static_cast<double>(adam.beta2), t));
  const double rate = state.learning_rate;
  return {.clip = state.clip_factor,
          .beta1 = adam.beta1,
          .rest1 = static_cast<float>(1 - static_cast<double>(adam.beta1)),
          .beta2 = adam.beta2,
          .rest2 = static_cast<float>(1 - static_cast<double>(adam.beta2)),
          .step_size = static_cast<float>(inside ? rate * root / correction1 : rate / correction1),
          .root_scale = inside ? 1.0F : static_cast<float>(1 / root),
          .epsilon = adam.epsilon,
          .decay = static_cast<float>(rate * adam.weight_decay)};
}

/// `mask` is 0 where the parameter does not decay.
__device__ void adam_element(const AdamFactors& f, float grad, float mask, float& param,
                             float& first, float& second) {
  const float g = grad * f.clip;
  first = fmaf(f.beta1, first, f.rest1 * g);
  second = fmaf(f.beta2, second, f.rest2 * g * g);
  const float decayed = fmaf(-f.decay * mask, param, param);
  param = decayed - f.step_size * first / fmaf(sqrtf(second), f.root_scale, f.epsilon);
}

/// What an Adam update reads of four elements.
struct AdamElements {
  float4 grad, mask, param, first, second;
};

/// The powers are one thread's work: double precision is slow on some GPUs. Meanwhile the first
/// elements are on their way.
__global__ void adam_kernel(const __grid_constant__ AdamParameters adam, const StepState* state,
                            const float* grads, const float* decay_mask, float* params,
                            float* first_moment, float* second_moment, std::int64_t count) {
  const auto load = [&](std::int64_t i) -> AdamElements {
    const std::int64_t left = count - i;
    return {.grad = load4(grads + i, left),
            .mask = decay_mask != nullptr ? load4(decay_mask + i, left) : float4{},
            .param = load4(params + i, left),
            .first = load4(first_moment + i, left),
            .second = load4(second_moment + i, left)};
  };
  std::int64_t i = first_element();
  AdamElements at = load(i);
  if (state->frozen != 0) return;
  __shared__ AdamFactors factors;
  if (threadIdx.x == 0) factors = adam_factors(adam, *state);
  __syncthreads();
  while (i < count) {
    adam_element(factors, at.grad.x, at.mask.x, at.param.x, at.first.x, at.second.x);
    adam_element(factors, at.grad.y, at.mask.y, at.param.y, at.first.y, at.second.y);
    adam_element(factors, at.grad.z, at.mask.z, at.param.z, at.first.z, at.second.z);
    adam_element(factors, at.grad.w, at.mask.w, at.param.w, at.first.w, at.second.w);
    const std::int64_t left = count - i;
    store4(first_moment + i, left, at.first);
    store4(second_moment + i, left, at.second);
    store4(params + i, left, at.param);
    i += element_stride();
    at = load(i);
  }
}

/// Without momentum the velocity is the gradient and nobody keeps it.
__device__ void sgd_element(const SgdParameters& sgd, float rate, float g, float& param,
                            float& velocity) {
  velocity = fmaf(sgd.momentum, velocity, g);
  param = fmaf(-rate, sgd.nesterov ? fmaf(sgd.momentum, velocity, g) : velocity, param);
}

__global__ void sgd_kernel(SgdParameters sgd, const StepState* state, const float* grads,
                           float* params, float* velocity, std::int64_t count) {
  if (state->frozen != 0) return;
  const float rate = state->learning_rate;
  const float clip = state->clip_factor;
  for (std::int64_t i = first_element(); i < count; i += element_stride()) {
    const std::int64_t left = count - i;
    const float4 g = load4(grads + i, left);
    float4 p = load4(params + i, left);
    float4 v = velocity != nullptr ? load4(velocity + i, left) : float4{};
    sgd_element(sgd, rate, g.x * clip, p.x, v.x);
    sgd_element(sgd, rate, g.y * clip, p.y, v.y);
    sgd_element(sgd, rate, g.z * clip, p.z, v.z);
    sgd_element(sgd, rate, g.w * clip, p.w, v.w);
    if (velocity != nullptr) store4(velocity + i, left, v);
    store4(params + i, left, p);
  }
}

__global__ void add_l2_gradient_kernel(const float* factor, const float* params, float* grads,
                                       std::int64_t count) {
  for (std::int64_t i = first_element(); i < count; i += element_stride()) {
    const std::int64_t left = count - i;
    const float4 f = load4(factor + i, left);
    const float4 p = load4(params + i, left);
    const float4 g = load4(grads + i, left);
    store4(grads + i, left,
           {fmaf(f.x, p.x, g.x), fmaf(f.y, p.y, g.y), fmaf(f.z, p.z, g.z), fmaf(f.w, p.w, g.w)});
  }
}

__device__ double square(float value) {
  return static_cast<double>(value) * value;
}

/// `abandoned` is read across the bus to the host: by one thread, at first, and needed at last. The
/// stream puts that after the reduction of the gradients, which may have been abandoned.
__global__ void measure_gradient_kernel(const float* grads, std::int64_t count, float max_norm,
                                        double* scratch, StepState* state,
                                        const volatile std::uint32_t* abandoned) {
  const bool asks = abandoned != nullptr && blockIdx.x == 0 && threadIdx.x == 0;
  const std::uint32_t answer = asks ? *abandoned : 0;
  sum_chunks(
      count, scratch,
      [&](std::int64_t i, std::int64_t left) {
        const float4 g = load4(grads + i, left);
        return (square(g.x) + square(g.y)) + (square(g.z) + square(g.w));
      },
      [&](double sum) { set_norm(static_cast<float>(sqrt(sum)), max_norm, *state); });
  if (answer != 0) state->frozen = 1;  // set_norm never clears it
}

}  // namespace

void adam_update(Context& context, const AdamParameters& adam, const StepState* state,
                 const float* grads, const float* decay_mask, float* params, float* first_moment,
                 float* second_moment, std::int64_t count) {
  const float* mask = adam.weight_decay != 0 ? decay_mask : nullptr;
  adam_kernel<<<blocks_for(count), kThreads, 0, stream_of(context)>>>(
      adam, state, grads, mask, params, first_moment, second_moment, count);
  check_launch("adam_update");
}

void sgd_update(Context& context, const SgdParameters& sgd, const StepState* state,
                const float* grads, float* params, float* velocity, std::int64_t count) {
  float* kept = sgd.momentum != 0 ? velocity : nullptr;
  sgd_kernel<<<blocks_for(count), kThreads, 0, stream_of(context)>>>(sgd, state, grads, params,
                                                                     kept, count);
  check_launch("sgd_update");
}

void add_l2_gradient(Context& context, const float* l2_factor, const float* params, float* grads,
                     std::int64_t count) {
  add_l2_gradient_kernel<<<blocks_for(count), kThreads, 0, stream_of(context)>>>(l2_factor, params,
                                                                                 grads, count);
  check_launch("add_l2_gradient");
}

void measure_gradient(Context& context, const float* grads, std::int64_t count, float max_norm,
                      double* scratch, StepState* state, const std::uint32_t* abandoned) {
  measure_gradient_kernel<<<chunks_of(count), kThreads, 0, stream_of(context)>>>(
      grads, count, max_norm, scratch, state, abandoned);
  check_launch("measure_gradient");
}

}  // namespace lockstep::cuda
