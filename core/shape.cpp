#include "lockstep/core/shape.h"

#include <ostream>

#include "lockstep/core/error.h"

namespace lockstep {

namespace {
constexpr std::int64_t kMaxCount = std::int64_t{1} << 62;
}

Shape::Shape(std::initializer_list<std::int64_t> extents) {
  for (const std::int64_t extent : extents) append(extent);
}

void Shape::append(std::int64_t extent) {
  if (rank_ == kMaxRank) {
    throw ShapeError(
        message("shape: more than ", kMaxRank, " extents; the largest rank is ", kMaxRank));
  }
  if (extent < 0) {
    throw ShapeError(
        message("shape: extent ", extent, " on axis ", rank_, "; extents are 0 or more"));
  }
  if (extent != 0 && count_ > kMaxCount / extent) {
    throw ShapeError("shape: the number of elements is beyond 2^62; use smaller extents");
  }
  extents_[static_cast<std::size_t>(rank_++)] = extent;
  count_ *= extent;
}

std::int64_t Shape::operator[](int axis) const {
  if (axis < 0 || axis >= rank_) {
    throw ShapeError(message("shape: axis ", axis, " of ", to_string(), "; want 0 to ", rank_ - 1));
  }
  return extents_[static_cast<std::size_t>(axis)];
}

Shape Shape::without_first() const {
  if (rank_ == 0) throw ShapeError("shape: a scalar has no first extent to take off");
  Shape rest;
  for (int axis = 1; axis < rank_; ++axis) rest.append((*this)[axis]);
  return rest;
}

Shape Shape::with_first(std::int64_t extent) const {
  Shape batch;
  batch.append(extent);
  for (int axis = 0; axis < rank_; ++axis) batch.append((*this)[axis]);
  return batch;
}

std::string Shape::to_string() const {
  std::string text = "(";
  for (int axis = 0; axis < rank_; ++axis) {
    if (axis > 0) text += ", ";
    text += std::to_string((*this)[axis]);
  }
  return text + ")";
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  return out << shape.to_string();
}

}  // namespace lockstep
