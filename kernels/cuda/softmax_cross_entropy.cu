// Softmax cross-entropy, a warp for each sample, in double as on a CPU; and the sums of its
// results.
#include "lockstep/core/cuda/runtime.h"
#include "lockstep/kernels/cuda/extents.h"
#include "lockstep/kernels/cuda/kernels.h"
#include "lockstep/kernels/cuda/launch.h"

namespace lockstep::cuda {
namespace {

/// The largest of some values and the first class that has it.
struct Largest {
  double value;
  int index;

  /// For classes in rising order: only a larger value takes over, never a NaN.
  __device__ void consider(double other, int other_index) {
    if (other > value) *this = {other, other_index};
  }

  /// The largest of all lanes, in every lane.
  __device__ void combine() {
    for (int distance = kWarp / 2; distance > 0; distance /= 2) {
      const Largest other{__shfl_xor_sync(kAllLanes, value, distance),
                          __shfl_xor_sync(kAllLanes, index, distance)};
      if (other.value > value || (other.value == value && other.index < index)) *this = other;
    }
  }
};

/// The target of one sample: class `index`, or soft[0..classes).
struct Target {
  const float* soft;
  int index;
  __device__ double at(int c) const { return soft != nullptr ? soft[c] : (c == index ? 1.0 : 0.0); }
};

constexpr int kSamplesPerBlock = 4;

// dlogits may be logits: a lane writes only the classes that it alone still reads.
__global__ void softmax_kernel(std::int64_t samples, int classes, const float* logits,
                               Targets targets, const StepState* __restrict__ state,
                               float* __restrict__ loss, float* __restrict__ correct,
                               float* dlogits) {
  const std::int64_t n =
      static_cast<std::int64_t>(blockIdx.x) * kSamplesPerBlock + threadIdx.x / kWarp;
  if (n >= samples) return;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const float* z = logits + n * classes;
  float* gradient = dlogits != nullptr ? dlogits + n * classes : nullptr;
  if (targets.sample_index[n] < 0) {
    if (lane == 0) {
      loss[n] = 0;
      correct[n] = 0;
    }
    if (gradient == nullptr) return;
    for (int c = lane; c < classes; c += kWarp) gradient[c] = 0;
    return;
  }
  const Target t{targets.soft != nullptr ? targets.soft + n * classes : nullptr,
                 targets.soft != nullptr ? 0 : targets.classes[n]};

  Largest predicted{z[0], 0};
  Largest wanted{t.at(0), 0};
  for (int c = lane; c < classes; c += kWarp) {
    predicted.consider(z[c], c);
    wanted.consider(t.at(c), c);
  }
  predicted.combine();
  wanted.combine();

  double sum_exp = 0;
  double sum_target = 0;
  for (int c = lane; c < classes; c += kWarp) {
    sum_exp += exp(z[c] - predicted.value);
    sum_target += t.at(c);
  }
  sum_exp = warp_sum(sum_exp);
  sum_target = warp_sum(sum_target);

  const double log_sum = log(sum_exp);
  const double share = sum_target / sum_exp;
  const double weight = gradient != nullptr ? state->inverse_samples : 0.0;
  double part = 0;
  for (int c = lane; c < classes; c += kWarp) {
    const double target = t.at(c);
    const double below = z[c] - predicted.value;
    // A class that is no part of the target adds 0, also when its logit is -infinity.
    if (target != 0) part += target * (log_sum - below);
    if (gradient != nullptr) {
      gradient[c] = static_cast<float>((exp(below) * share - target) * weight);
    }
  }
  const double total = warp_sum(part);
  if (lane == 0) {
    loss[n] = static_cast<float>(total);
    // A NaN among the logits makes sum_exp NaN and predicts nothing.
    correct[n] = predicted.index == wanted.index && !isnan(sum_exp) ? 1.0F : 0.0F;
  }
}

constexpr int kSumThreads = 256;

/// Sums over (n) by one block, valid in thread 0.
struct Sums {
  double loss, correct;
};

__device__ Sums sum_samples(std::int64_t n, const float* loss, const float* correct) {
  __shared__ double loss_partial[kWarp];
  __shared__ double correct_partial[kWarp];
  Sums sums{0, 0};
  for (std::int64_t i = threadIdx.x; i < n; i += kSumThreads) {
    sums.loss += loss[i];
    sums.correct += correct[i];
  }
  sums.loss = block_sum(sums.loss, loss_partial);
  sums.correct = block_sum(sums.correct, correct_partial);
  return sums;
}

__global__ void __launch_bounds__(kSumThreads)
    sum_losses_kernel(const StepState* __restrict__ state, const float* __restrict__ loss,
                      const float* __restrict__ correct, std::int64_t n,
                      StepTail* __restrict__ tail, bool accumulate) {
  const Sums sums = sum_samples(n, loss, correct);
  if (threadIdx.x != 0) return;
  tail->loss = static_cast<float>((accumulate ? tail->loss : 0.0) + sums.loss);
  tail->correct = static_cast<float>((accumulate ? tail->correct : 0.0) + sums.correct);
  if (!accumulate) tail->stop = static_cast<float>(state->stop);
}

__global__ void __launch_bounds__(kSumThreads)
    sum_chunk_kernel(const float* __restrict__ loss, const float* __restrict__ correct,
                     std::int64_t n, ChunkSums* __restrict__ total, bool accumulate) {
  const Sums sums = sum_samples(n, loss, correct);
  if (threadIdx.x != 0) return;
  total->loss = (accumulate ? total->loss : 0.0) + sums.loss;
  total->correct = (accumulate ? total->correct : 0) + static_cast<std::int64_t>(sums.correct);
}

}  // namespace

void softmax_cross_entropy(Context& context, ConstFloatView logits, const Targets& targets,
                           const StepState* state, float* loss, float* correct, FloatView dlogits) {
  const std::int64_t samples = logits.shape[0];
  const std::int64_t blocks = (samples + kSamplesPerBlock - 1) / kSamplesPerBlock;
  softmax_kernel<<<int_extent(blocks), kSamplesPerBlock * kWarp, 0, stream_of(context)>>>(
      samples, int_extent(logits.shape[1]), logits.data, targets, state, loss, correct,
      dlogits.data);
  check_launch("softmax_cross_entropy");
}

void sum_losses(Context& context, const StepState* state, const float* loss, const float* correct,
                std::int64_t n, StepTail* tail, bool accumulate) {
  sum_losses_kernel<<<1, kSumThreads, 0, stream_of(context)>>>(state, loss, correct, n, tail,
                                                               accumulate);
  check_launch("sum_losses");
}

void sum_chunk(Context& context, const float* loss, const float* correct, std::int64_t n,
               ChunkSums* sums, bool accumulate) {
  sum_chunk_kernel<<<1, kSumThreads, 0, stream_of(context)>>>(loss, correct, n, sums, accumulate);
  check_launch("sum_chunk");
}

}  // namespace lockstep::cuda
