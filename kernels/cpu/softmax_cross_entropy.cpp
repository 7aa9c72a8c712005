// Softmax cross-entropy in Layout::n16, sample by sample in double: ten logits a sample cost under
// a hundredth of a step of the article's model, and a gradient softmax - target keeps its digits
// when the prediction is almost sure.
#include <cmath>

#include "lockstep/kernels/cpu/plain.h"

namespace lockstep::cpu {
namespace {

/// The logits of one sample: class c at data[c * kN16].
struct Logits {
  const float* data;
  std::int64_t classes;
  double at(std::int64_t c) const { return data[c * kN16]; }
};

/// The target of one sample: class `index`, or soft[0..classes).
struct Target {
  const float* soft;
  std::int64_t index;
  double at(std::int64_t c) const { return soft != nullptr ? soft[c] : (c == index ? 1.0 : 0.0); }
};

struct Result {
  double loss = 0;
  double largest = 0;     ///< logit
  double sum_exp = 0;     ///< of exp(logit - largest)
  double sum_target = 0;  ///< over the classes
  bool correct = false;
};

Result evaluate(const Logits& z, const Target& t) {
  Result r;
  std::int64_t predicted = 0;
  std::int64_t wanted = 0;
  for (std::int64_t c = 1; c < z.classes; ++c) {
    if (z.at(c) > z.at(predicted)) predicted = c;
    if (t.at(c) > t.at(wanted)) wanted = c;
  }
  r.largest = z.at(predicted);
  for (std::int64_t c = 0; c < z.classes; ++c) {
    r.sum_exp += std::exp(z.at(c) - r.largest);
    r.sum_target += t.at(c);
  }
  const double log_sum = std::log(r.sum_exp);
  for (std::int64_t c = 0; c < z.classes; ++c) {
    // A class that is no part of the target adds 0, also when its logit is -infinity.
    if (t.at(c) != 0) r.loss += t.at(c) * (log_sum - (z.at(c) - r.largest));
  }
  // A NaN among the logits makes sum_exp NaN and predicts nothing.
  r.correct = predicted == wanted && !std::isnan(r.sum_exp);
  return r;
}

}  // namespace

void softmax_cross_entropy(std::int64_t samples, std::int64_t classes, const float* logits,
                           const Targets& targets, const StepState* state, float* loss,
                           float* correct, float* dlogits) {
  for (std::int64_t n = 0; n < samples; ++n) {
    const std::int64_t at = n / kN16 * classes * kN16 + n % kN16;
    if (targets.sample_index[n] < 0) {
      loss[n] = 0;
      correct[n] = 0;
      if (dlogits != nullptr) {
        for (std::int64_t c = 0; c < classes; ++c) dlogits[at + c * kN16] = 0;
      }
      continue;
    }
    const Logits z{logits + at, classes};
    const Target t{targets.soft != nullptr ? targets.soft + n * classes : nullptr,
                   targets.soft != nullptr ? 0 : targets.classes[n]};
    const Result r = evaluate(z, t);
    loss[n] = static_cast<float>(r.loss);
    correct[n] = r.correct ? 1.0F : 0.0F;
    if (dlogits == nullptr) continue;
    const double weight = state->inverse_samples;
    const double share = r.sum_target / r.sum_exp;
    for (std::int64_t c = 0; c < classes; ++c) {
      const double gradient = std::exp(z.at(c) - r.largest) * share - t.at(c);
      dlogits[at + c * kN16] = static_cast<float>(gradient * weight);
    }
  }
}

void sum_losses(const StepState& state, const float* loss, const float* correct, std::int64_t n,
                StepTail* tail, bool accumulate) {
  double loss_sum = accumulate ? tail->loss : 0;
  double correct_sum = accumulate ? tail->correct : 0;
  for (std::int64_t i = 0; i < n; ++i) {
    loss_sum += loss[i];
    correct_sum += correct[i];
  }
  tail->loss = static_cast<float>(loss_sum);
  tail->correct = static_cast<float>(correct_sum);
  if (!accumulate) tail->stop = static_cast<float>(state.stop);
}

void sum_chunk(const float* loss, const float* correct, std::int64_t n, ChunkSums* sums,
               bool accumulate) {
  ChunkSums total = accumulate ? *sums : ChunkSums{};
  for (std::int64_t i = 0; i < n; ++i) {
    total.loss += static_cast<double>(loss[i]);
    total.correct += correct[i] > 0 ? 1 : 0;
  }
  *sums = total;
}

}  // namespace lockstep::cpu
