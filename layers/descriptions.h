// The layers as users write them: plain values with designated initialisers.
//
//   Sequential{Conv2d{.in = 1, .out = 8, .kernel = 3, .padding = same}, MaxPool2d{.kernel = 2},
//   Flatten{}, ...}
//
// Shapes here are those of one sample, without the batch: (C, H, W) or (D). A type is a description
// when it has the members of ReLU below; users may add their own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/core/context.h"
#include "lockstep/core/shape.h"
#include "lockstep/kernels/window.h"
#include "lockstep/layers/layer.h"
#include "lockstep/layers/parameter.h"

namespace lockstep {

/// Extents in height and width; converts from one number for both.
struct Extent2d {
  std::int64_t h = 1;
  std::int64_t w = 1;
  constexpr Extent2d() = default;
  constexpr Extent2d(std::int64_t both)
      : h(both), w(both) {}  // NOLINT(google-explicit-constructor)
  constexpr Extent2d(std::int64_t h_in, std::int64_t w_in) : h(h_in), w(w_in) {}
  friend bool operator==(const Extent2d&, const Extent2d&) = default;
};

/// Border around the input of a convolution or pooling: SAME (output = ceil(input / stride),
/// TensorFlow's rule), or the same number of places on both sides of an axis.
struct Padding {
  bool is_same = false;
  Extent2d places{0};
  constexpr Padding() = default;
  constexpr Padding(std::int64_t both) : places(both) {}  // NOLINT(google-explicit-constructor)
  constexpr Padding(std::int64_t h, std::int64_t w) : places(h, w) {}
  [[nodiscard]] static constexpr Padding make_same() {
    Padding padding;
    padding.is_same = true;
    return padding;
  }
};
inline constexpr Padding same = Padding::make_same();
inline constexpr Padding valid{};

/// 2-D convolution, parameters weight (out, in, kernel.h, kernel.w) and bias (out).
struct Conv2d {
  std::int64_t in = 0;
  std::int64_t out = 0;
  Extent2d kernel{1};
  Extent2d stride{1};
  Padding padding{};
  bool bias = true;
  Initializer weight_init = glorot_uniform;
  Initializer bias_init = zero;
  std::string name{};

  static constexpr const char* kKind = "conv";
  static constexpr LayerTraits kTraits{.backward_reads_y = false};
  [[nodiscard]] Shape output_shape(const Shape& in_shape) const;
  [[nodiscard]] std::vector<ParameterSpec> parameters() const;
  [[nodiscard]] std::string summary() const;
  [[nodiscard]] std::size_t saved_bytes(const Shape&, const Shape&) const { return 0; }
  [[nodiscard]] std::size_t workspace_bytes(Context& context, const Shape& x) const;
  [[nodiscard]] std::unique_ptr<Layer> bind(const Binding& binding) const;
  [[nodiscard]] Window window(const Shape& in_shape) const;
};

/// 2-D max-pooling; stride 0 means the kernel's.
struct MaxPool2d {
  Extent2d kernel{2};
  Extent2d stride{0};
  Padding padding{};
  std::string name{};

  static constexpr const char* kKind = "pool";
  static constexpr LayerTraits kTraits{.backward_reads_x = false, .backward_reads_y = false};
  [[nodiscard]] Shape output_shape(const Shape& in_shape) const;
  [[nodiscard]] std::vector<ParameterSpec> parameters() const { return {}; }
  [[nodiscard]] std::string summary() const;
  [[nodiscard]] std::size_t saved_bytes(const Shape& x, const Shape& y) const;
  [[nodiscard]] std::size_t workspace_bytes(Context&, const Shape&) const { return 0; }
  [[nodiscard]] std::unique_ptr<Layer> bind(const Binding& binding) const;
  [[nodiscard]] Window window(const Shape& in_shape) const;
};

/// Fully connected layer, parameters weight (out, in) and bias (out). Takes (D) only: put Flatten
/// in front of it.
struct Linear {
  std::int64_t in = 0;
  std::int64_t out = 0;
  bool bias = true;
  Initializer weight_init = glorot_uniform;
  Initializer bias_init = zero;
  std::string name{};

  static constexpr const char* kKind = "fc";
  static constexpr LayerTraits kTraits{.backward_reads_y = false};
  [[nodiscard]] Shape output_shape(const Shape& in_shape) const;
  [[nodiscard]] std::vector<ParameterSpec> parameters() const;
  [[nodiscard]] std::string summary() const;
  [[nodiscard]] std::size_t saved_bytes(const Shape&, const Shape&) const { return 0; }
  [[nodiscard]] std::size_t workspace_bytes(Context&, const Shape&) const { return 0; }
  [[nodiscard]] std::unique_ptr<Layer> bind(const Binding& binding) const;
};

/// max(x, 0), any shape.
struct ReLU {
  std::string name{};

  static constexpr const char* kKind = "relu";
  static constexpr LayerTraits kTraits{.backward_reads_x = false,
                                       .output = LayerTraits::Output::may_overwrite_x};
  /// Shape of a sample after the layer; throws ShapeError saying what it takes.
  [[nodiscard]] Shape output_shape(const Shape& in_shape) const { return in_shape; }
  [[nodiscard]] std::vector<ParameterSpec> parameters() const { return {}; }
  /// One line for describe(): "relu".
  [[nodiscard]] std::string summary() const;
  /// Bytes that forward keeps for backward, given the batch shapes of x and y.
  [[nodiscard]] std::size_t saved_bytes(const Shape&, const Shape&) const { return 0; }
  /// Bytes of workspace, given the batch shape of x.
  [[nodiscard]] std::size_t workspace_bytes(Context&, const Shape&) const { return 0; }
  [[nodiscard]] std::unique_ptr<Layer> bind(const Binding& binding) const;
};

/// (C, H, W) to (C*H*W), channel first. Moves nothing: y is x.
struct Flatten {
  std::string name{};

  static constexpr const char* kKind = "flatten";
  static constexpr LayerTraits kTraits{
      .backward_reads_x = false, .backward_reads_y = false, .output = LayerTraits::Output::is_x};
  [[nodiscard]] Shape output_shape(const Shape& in_shape) const { return {in_shape.count()}; }
  [[nodiscard]] std::vector<ParameterSpec> parameters() const { return {}; }
  [[nodiscard]] std::string summary() const;
  [[nodiscard]] std::size_t saved_bytes(const Shape&, const Shape&) const { return 0; }
  [[nodiscard]] std::size_t workspace_bytes(Context&, const Shape&) const { return 0; }
  [[nodiscard]] std::unique_ptr<Layer> bind(const Binding& binding) const;
};

/// Inverted dropout: in training each value is dropped with probability `rate`, the others grow by
/// 1 / (1 - rate).
struct Dropout {
  float rate = 0.5F;
  std::string name{};

  static constexpr const char* kKind = "dropout";
  static constexpr LayerTraits kTraits{.backward_reads_x = false,
                                       .backward_reads_y = false,
                                       .output = LayerTraits::Output::may_overwrite_x};
  [[nodiscard]] Shape output_shape(const Shape& in_shape) const;
  [[nodiscard]] std::vector<ParameterSpec> parameters() const { return {}; }
  [[nodiscard]] std::string summary() const;
  [[nodiscard]] std::size_t saved_bytes(const Shape& x, const Shape&) const {
    return static_cast<std::size_t>(x.count());
  }
  [[nodiscard]] std::size_t workspace_bytes(Context&, const Shape&) const { return 0; }
  [[nodiscard]] std::unique_ptr<Layer> bind(const Binding& binding) const;
};

}  // namespace lockstep
