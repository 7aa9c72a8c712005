// A model with its weights in host memory: what training hands out and what predicts.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/core/tensor.h"
#include "lockstep/layers/parameter.h"
#include "lockstep/layers/sequential.h"

namespace lockstep {

/// A Sequential and the values of its parameters. A value type. Predicting from several threads at
/// once is safe on separate objects only.
class Model {
 public:
  /// Starting values from the layers' initialisers and `seed`. `input_sample` is the shape of one
  /// sample, (1, 28, 28). Throws ShapeError when the layers do not fit it or each other.
  Model(Sequential layers, Shape input_sample, std::uint64_t seed = 0);

  [[nodiscard]] const Sequential& layers() const { return layers_; }
  [[nodiscard]] const Shape& input_sample() const { return input_sample_; }
  [[nodiscard]] const ParameterLayout& layout() const { return layout_; }
  /// The parameter arena in host memory, layout().size() floats.
  [[nodiscard]] const std::vector<float>& arena() const& { return arena_; }
  /// Of a temporary: the values themselves, so that no reference dangles.
  [[nodiscard]] std::vector<float> arena() && { return std::move(arena_); }
  /// Replaces all parameters at once; ShapeError unless there are layout().size() floats.
  void set_arena(std::vector<float> arena);

  /// A copy of the parameter `name` ("conv_1.weight"); UsageError lists the names when there is
  /// none.
  [[nodiscard]] Tensor parameter(const std::string& name) const;
  /// Replaces it; ShapeError when the shape differs.
  void set_parameter(const std::string& name, const Tensor& value);

  /// Logits (N, classes) of samples (N, ...input_sample), computed on the CPU by the calling
  /// thread. ShapeError when the samples have another shape.
  [[nodiscard]] Tensor predict(const Tensor& samples) const;
  /// Index of the first largest logit of every sample.
  [[nodiscard]] std::vector<int> predict_classes(const Tensor& samples) const;

  /// Sequential::describe with this model's input.
  [[nodiscard]] std::string describe() const { return layers_.describe(input_sample_); }

 private:
  Sequential layers_;
  Shape input_sample_;
  ParameterLayout layout_;
  std::vector<float> arena_;
};

}  // namespace lockstep
