// Shapes and strides of four-dimensional tensors, and the rule of every cuDNN output.
#pragma once

#include <array>
#include <cstddef>

#include "cublas/gemm.h"

namespace cusim {

/// Extents and steps (in elements) along n, c, h, w.
struct Tensor {
  std::array<Index, 4> extents{};
  std::array<Index, 4> steps{};

  [[nodiscard]] Index n() const { return extents[0]; }
  [[nodiscard]] Index c() const { return extents[1]; }
  [[nodiscard]] Index h() const { return extents[2]; }
  [[nodiscard]] Index w() const { return extents[3]; }
  [[nodiscard]] Index count() const { return n() * c() * h() * w(); }

  /// Elements from the first to the last one, gaps included.
  [[nodiscard]] std::size_t span() const {
    Index last = 0;
    for (std::size_t axis = 0; axis < 4; ++axis) last += (extents[axis] - 1) * steps[axis];
    return static_cast<std::size_t>(last + 1);
  }
  [[nodiscard]] Index offset(Index in, Index ic, Index ih, Index iw) const {
    return in * steps[0] + ic * steps[1] + ih * steps[2] + iw * steps[3];
  }
  [[nodiscard]] bool same_extents(const Tensor& other) const { return extents == other.extents; }
};

/// A tensor without gaps in the order n, c, h, w.
[[nodiscard]] inline Tensor packed_tensor(Index n, Index c, Index h, Index w) {
  return {{n, c, h, w}, {c * h * w, h * w, w, 1}};
}

/// What cuDNN's alpha and beta mean: out = alpha * result + beta * out, and an `out` that beta == 0
/// is never read.
struct Blend {
  float alpha = 1, beta = 0;

  void operator()(float result, float& out) const {
    out = beta == 0 ? alpha * result : alpha * result + beta * out;
  }
};

/// Calls `visit(n, c, h, w)` for every place of `tensor` in that order.
template <class Visit>
void for_each_place(const Tensor& tensor, Visit visit) {
  for (Index n = 0; n < tensor.n(); ++n) {
    for (Index c = 0; c < tensor.c(); ++c) {
      for (Index h = 0; h < tensor.h(); ++h) {
        for (Index w = 0; w < tensor.w(); ++w) visit(n, c, h, w);
      }
    }
  }
}

/// Blends image `n` of `tensor` with `result`, which is packed (c, h, w).
inline void blend_image(const Tensor& tensor, Index n, const float* result, Blend blend,
                        float* out) {
  for (Index c = 0; c < tensor.c(); ++c) {
    for (Index h = 0; h < tensor.h(); ++h) {
      float* row = out + tensor.offset(n, c, h, 0);
      for (Index w = 0; w < tensor.w(); ++w) blend(*result++, row[w * tensor.steps[3]]);
    }
  }
}

}  // namespace cusim
