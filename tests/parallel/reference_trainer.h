// An independent trainer of small CNNs in double precision, by plain loops: what the framework's
// training is held against. It shares no code with the library but the data set, the order of
// samples and the starting weights.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/data/dataset.h"
#include "lockstep/layers/model.h"

namespace lockstep::test {

/// A stage of the reference net: conv 3x3 SAME followed by maxpool 2.
struct ReferenceConv {
  int in, out;
};

/// [conv 3x3 SAME + maxpool 2]* then fully connected, softmax cross-entropy; the article's net with
/// two conv stages.
class ReferenceTrainer {
 public:
  enum class Rule { sgd, adam_tensorflow, adam_pytorch };

  /// Weights are taken from `model` in the order conv weight, conv bias, ..., fc weight, fc bias.
  ReferenceTrainer(const Model& model, std::vector<ReferenceConv> convs, int height, int width,
                   int classes);

  /// One step on the samples `first`..`first + count` of `order`; returns the mean loss before the
  /// update.
  double step(const Dataset& data, const std::vector<std::int32_t>& order, std::int64_t first,
              std::int64_t count, double learning_rate, Rule rule);

  /// Parameters in the order of the constructor, each flattened in canonical order.
  [[nodiscard]] const std::vector<std::vector<double>>& parameters() const { return parameters_; }
  [[nodiscard]] const std::vector<std::vector<double>>& gradients() const { return gradients_; }

 private:
  double sample_gradient(const std::vector<double>& image, int label, double weight);

  std::vector<ReferenceConv> convs_;
  int height_, width_, classes_;
  std::vector<std::vector<double>> parameters_;
  std::vector<std::vector<double>> gradients_;
  std::vector<std::vector<double>> first_moments_;
  std::vector<std::vector<double>> second_moments_;
  std::int64_t updates_ = 0;
};

/// |a - b| / |b| by the Euclidean norm; infinity when a value is not finite.
double relative_difference(const std::vector<float>& a, const std::vector<double>& b);

}  // namespace lockstep::test
