// The batches that both backends' softmax cross-entropy is tested on, and its formula.
#pragma once

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "lockstep/kernels/softmax_cross_entropy.h"

#include "kernels/samples.h"

namespace lockstep::test {

/// Loss of one sample straight from the formula, for logits of ordinary size.
inline double reference_loss(const std::vector<double>& z, const std::vector<double>& t) {
  double sum = 0;
  for (const double value : z) sum += std::exp(value);
  double loss = 0;
  for (std::size_t c = 0; c < z.size(); ++c) loss += t[c] * (std::log(sum) - z[c]);
  return loss;
}

inline std::size_t first_largest(const std::vector<double>& values) {
  std::size_t best = 0;
  for (std::size_t c = 1; c < values.size(); ++c) best = values[c] > values[best] ? c : best;
  return best;
}

/// Logits and targets of `real` samples, filled up to whole groups, of 16 as on a CPU, with places
/// without one.
struct Batch {
  std::int64_t real, padded, classes;
  std::vector<float> logits;  // canonical, of the real samples
  std::vector<std::int32_t> index, target;
  std::vector<float> soft;

  Batch(std::int64_t n, std::int64_t c, bool soft_targets, std::int64_t group = 16)
      : real(n),
        padded(round_up(n, group)),
        classes(c),
        logits(random_values(n * c, 1, -4, 4)),
        index(static_cast<std::size_t>(padded), -1) {
    for (std::int64_t i = 0; i < n; ++i)
      index[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(100 + i);
    if (soft_targets) {
      soft = random_values(padded * c, 2, 0, 1);
      for (std::size_t i = static_cast<std::size_t>(n * c); i < soft.size(); ++i) soft[i] = 0;
    } else {
      for (std::int64_t i = 0; i < padded; ++i)
        target.push_back(static_cast<std::int32_t>(i < n ? (7 * i) % c : 0));
    }
  }
  [[nodiscard]] Targets targets() const {
    return {index.data(), target.empty() ? nullptr : target.data(),
            soft.empty() ? nullptr : soft.data()};
  }
  [[nodiscard]] std::vector<double> sample(std::int64_t n) const {
    return {logits.begin() + n * classes, logits.begin() + (n + 1) * classes};
  }
  [[nodiscard]] std::vector<double> target_of(std::int64_t n) const {
    if (!soft.empty()) return {soft.begin() + n * classes, soft.begin() + (n + 1) * classes};
    std::vector<double> one_hot(static_cast<std::size_t>(classes), 0.0);
    one_hot[static_cast<std::size_t>(target[static_cast<std::size_t>(n)])] = 1;
    return one_hot;
  }
};

/// A batch of one sample with these logits and class.
inline Batch single(std::vector<float> logits, std::int32_t target) {
  Batch batch(1, static_cast<std::int64_t>(logits.size()), false);
  batch.logits = std::move(logits);
  batch.target[0] = target;
  return batch;
}

}  // namespace lockstep::test
