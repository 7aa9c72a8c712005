// Arithmetic of the simulated cuBLAS and cuDNN: matrix products and rounding to TF32. Plain
// functions on host memory; nothing here knows CUDA.
#pragma once

#include <cstdint>

namespace cusim {

using Index = std::int64_t;

/// A matrix in memory: element (row, column) lies at data[row * row_step + column * column_step].
struct ConstMatrix {
  const float* data;
  Index row_step, column_step;

  [[nodiscard]] const float& operator()(Index row, Index column) const {
    return data[row * row_step + column * column_step];
  }
};

/// How the factors of a product are read.
enum class Precision {
  kFloat,  ///< as they are
  kTf32,   ///< rounded to 10 bits of mantissa, as tensor cores do with TF32
};

/// `value` with its mantissa rounded to 10 bits, halves away from zero; infinities and NaN stay.
[[nodiscard]] float round_to_tf32(float value);

/// c = alpha * a * b + beta * c, for a (m, k), b (k, n) and c (m, n) with columns of unit step that
/// start `ldc` floats apart. With beta == 0, c is not read. With alpha == 0, a and b are not.
///
/// Sums run over k in blocks of 256, so rounding errors stay near those of a GPU's tiles. The order
/// is a function of the shape alone.
void multiply(Index m, Index n, Index k, float alpha, ConstMatrix a, ConstMatrix b, float beta,
              float* c, Index ldc, Precision precision = Precision::kFloat);

}  // namespace cusim
