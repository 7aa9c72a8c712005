// Tensors: views that operations work on, and an owner for host values.
#pragma once

#include <type_traits>
#include <utility>
#include <vector>

#include "lockstep/core/buffer.h"
#include "lockstep/core/shape.h"

namespace lockstep {

/// How the elements of an activation lie in memory. Parameters are always canonical.
enum class Layout : unsigned char {
  canonical,  ///< row-major in the order of the shape: NCHW activations, KCRS filters, [out][in]
  n16,        ///< batch-blocked: [N/16][the rest of the shape][16 samples]; N is a multiple of 16
};

/// Samples that share a vector in Layout::n16.
inline constexpr int kN16 = 16;

[[nodiscard]] constexpr const char* name_of(Layout layout) {
  return layout == Layout::n16 ? "n16" : "canonical";
}

/// A dense tensor somebody else owns. `data` may be null where an operation documents an optional
/// tensor.
template <class T>
struct View {
  T* data = nullptr;
  Shape shape{};
  Layout layout = Layout::canonical;

  View() = default;
  View(T* data_in, Shape shape_in, Layout layout_in = Layout::canonical)
      : data(data_in), shape(shape_in), layout(layout_in) {}
  /// A view of mutable elements is also a view of constant ones.
  template <class U>
  requires(std::is_same_v<const U, T> && !std::is_same_v<U, T>)
      View(const View<U>& other)  // NOLINT(google-explicit-constructor): mirrors T* to const T*
      : data(other.data), shape(other.shape), layout(other.layout) {}
};

using FloatView = View<float>;
using ConstFloatView = View<const float>;

/// A float32 tensor in host memory, canonical layout: what users hand in and get back. A value
/// type.
class Tensor {
 public:
  Tensor() = default;
  /// Zeros of `shape`.
  explicit Tensor(Shape shape);
  /// Takes `values`; throws ShapeError when their number is not `shape.count()`.
  Tensor(Shape shape, std::vector<float> values);

  [[nodiscard]] const Shape& shape() const { return shape_; }
  [[nodiscard]] float* data() { return values_.data(); }
  [[nodiscard]] const float* data() const { return values_.data(); }
  [[nodiscard]] std::vector<float>& values() & { return values_; }
  [[nodiscard]] const std::vector<float>& values() const& { return values_; }
  /// Of a temporary: the values themselves, so that no reference dangles.
  [[nodiscard]] std::vector<float> values() && { return std::move(values_); }

 private:
  Shape shape_{0};
  std::vector<float> values_;
};

}  // namespace lockstep
