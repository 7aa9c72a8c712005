// The softmax cross-entropy of one sample by one warp. Internal; only for .cu files.
#pragma once

#include <cstdint>

#include "lockstep/kernels/cuda/launch.h"
#include "lockstep/kernels/softmax_cross_entropy.h"

namespace lockstep::cuda {

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

/// Sample n with the logits z; `gradient` is its row of dlogits, or null. All lanes of a warp call
/// it. The gradient may be z: a lane writes only the classes that it alone still reads.
__device__ inline void softmax_sample(std::int64_t n, int classes, const float* z,
                                      const Targets& targets, const StepState* state, float* loss,
                                      float* correct, float* gradient) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
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

}  // namespace lockstep::cuda
