// Parameters of layers: what they are, how they start, where they lie in the arenas.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/core/buffer.h"
#include "lockstep/core/shape.h"

namespace lockstep {

/// How a parameter starts. fan_in and fan_out are those of the weight (C*R*S and K*R*S for a
/// filter, D and O for a linear layer); for a vector of n values that has no weight's fans both are
/// n, as in the article.
struct Initializer {
  enum class Kind {
    zero,
    glorot_uniform,  ///< U(-a, a), a = sqrt(6 / (fan_in + fan_out)); Glorot and Bengio, AISTATS
                     ///< 2010
    he_normal,       ///< N(0, 2 / fan_in); He et al., ICCV 2015
    normal,          ///< N(0, stddev^2)
  };
  Kind kind = Kind::zero;
  float stddev = 0;  ///< Kind::normal only
};

inline constexpr Initializer zero{};
inline constexpr Initializer glorot_uniform{Initializer::Kind::glorot_uniform};
inline constexpr Initializer he_normal{Initializer::Kind::he_normal};
[[nodiscard]] constexpr Initializer normal(float stddev) {
  return {Initializer::Kind::normal, stddev};
}

/// One parameter of a layer, as its description states it.
struct ParameterSpec {
  std::string name;  ///< "weight" or "bias"
  Shape shape;       ///< KCRS filters, (O, D) linear weights
  Initializer initializer;
  std::int64_t fan_in = 0;
  std::int64_t fan_out = 0;
  bool decays = false;  ///< L2 and weight decay apply: weights yes, biases no
};

/// One parameter of a model.
struct Parameter {
  std::string name;  ///< "conv_1.weight"
  int layer = 0;     ///< index in the Sequential
  ParameterSpec spec;
  Place place;  ///< the same in the arenas of parameters, gradients and moments
};

class Sequential;

/// The one layout that the arenas of parameters, gradients and moments share: layers in reverse
/// order, so that the gradients that are ready first lie together; inside a layer in the order of
/// its specs; each 64-byte aligned.
class ParameterLayout {
 public:
  explicit ParameterLayout(const Sequential& model);

  /// In the order of the model's layers.
  [[nodiscard]] const std::vector<Parameter>& parameters() const { return parameters_; }
  /// Those of one layer, in the order of its specs.
  [[nodiscard]] std::vector<Parameter> of_layer(int layer) const;
  /// Floats of the parameter arena, padding included.
  [[nodiscard]] std::int64_t size() const { return size_; }
  /// Floats of the gradient arena: size() and the StepTail behind it.
  [[nodiscard]] std::int64_t gradient_size() const;
  /// Number of parameter values, padding left out.
  [[nodiscard]] std::int64_t parameter_count() const;

 private:
  std::vector<Parameter> parameters_;
  std::int64_t size_ = 0;
};

/// Fills `arena` (host memory, layout.size() floats) with the starting values; they depend on
/// `seed`, the parameter's number and the element's index alone.
void initialize_parameters(const ParameterLayout& layout, std::uint64_t seed, float* arena);

}  // namespace lockstep
