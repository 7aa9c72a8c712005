// The extents of a tensor.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <string>

namespace lockstep {

/// Extents of a dense tensor of rank 0 to 4, outermost first: (N, C, H, W). Rank 0 is a scalar.
class Shape {
 public:
  static constexpr int kMaxRank = 4;

  Shape() = default;
  /// Throws ShapeError for more than kMaxRank extents, a negative extent or a product beyond 2^62.
  Shape(std::initializer_list<std::int64_t> extents);

  [[nodiscard]] int rank() const { return rank_; }
  /// Extent of axis `axis`; throws ShapeError outside [0, rank).
  [[nodiscard]] std::int64_t operator[](int axis) const;
  /// Number of elements: the product of the extents, 1 for a scalar.
  [[nodiscard]] std::int64_t count() const { return count_; }
  /// The shape without its first extent: one sample of a batch.
  [[nodiscard]] Shape without_first() const;
  /// The shape with `extent` put in front: a batch of this.
  [[nodiscard]] Shape with_first(std::int64_t extent) const;
  [[nodiscard]] std::string to_string() const;

  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  void append(std::int64_t extent);

  std::array<std::int64_t, kMaxRank> extents_{};
  int rank_ = 0;
  std::int64_t count_ = 1;
};

/// Writes "(128, 1, 28, 28)".
std::ostream& operator<<(std::ostream& out, const Shape& shape);

}  // namespace lockstep
