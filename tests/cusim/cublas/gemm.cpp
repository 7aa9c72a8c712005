// Both factors are packed panel by panel (so that transposition and rounding cost m*k + k*n, not
// m*n*k), and a tile of columns is accumulated in a local array that the compiler keeps in vector
// registers or the first cache level.
#include "cublas/gemm.h"

#include <algorithm>
#include <bit>
#include <vector>

namespace cusim {
namespace {

constexpr Index kRows = 64;    // rows of a tile
constexpr Index kColumns = 4;  // columns of a tile
constexpr Index kDepth = 256;  // terms of a block of a sum

/// sums[column][row] of one tile over one block: `a` is [depth][kRows], `b` is [depth][kColumns].
/// Rows beyond `rows` are set to anything. The panels are this file's own, so sanitizers need not
/// look (they would make it many times slower); packing, where they do, reads what is others'.
__attribute__((no_sanitize("address", "thread", "undefined"))) void tile(Index rows, Index depth,
                                                                         const float* __restrict a,
                                                                         const float* __restrict b,
                                                                         float* __restrict sums) {
  constexpr Index kVector = 8;
  for (Index row = 0; row < rows; row += kVector) {
    float total[kColumns][kVector] = {};
    for (Index p = 0; p < depth; ++p) {
      const float* from = a + p * kRows + row;
      const float* factor = b + p * kColumns;
      for (Index column = 0; column < kColumns; ++column) {
        for (Index i = 0; i < kVector; ++i) total[column][i] += from[i] * factor[column];
      }
    }
    for (Index column = 0; column < kColumns; ++column) {
      std::copy_n(total[column], kVector, sums + column * kRows + row);
    }
  }
}

float rounded(float value, Precision precision) {
  return precision == Precision::kTf32 ? round_to_tf32(value) : value;
}

/// packed[p][i] = matrix(row + i, first + p) for i < rows, 0 up to kRows.
void pack_rows(ConstMatrix matrix, Index row, Index rows, Index first, Index depth,
               Precision precision, float* packed) {
  for (Index p = 0; p < depth; ++p) {
    for (Index i = 0; i < rows; ++i) {
      packed[p * kRows + i] = rounded(matrix(row + i, first + p), precision);
    }
    std::fill(packed + p * kRows + rows, packed + (p + 1) * kRows, 0.0F);
  }
}

/// packed[tile of columns][p][j] = matrix(first + p, column), 0 beyond n.
void pack_columns(ConstMatrix matrix, Index n, Index first, Index depth, Precision precision,
                  float* packed) {
  for (Index column = 0; column < n; column += kColumns) {
    for (Index p = 0; p < depth; ++p) {
      for (Index j = 0; j < kColumns; ++j) {
        *packed++ = column + j < n ? rounded(matrix(first + p, column + j), precision) : 0.0F;
      }
    }
  }
}

}  // namespace

float round_to_tf32(float value) {
  constexpr std::uint32_t kDropped = 0x1FFF;
  constexpr std::uint32_t kExponent = 0x7F800000;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & kExponent) == kExponent) return value;
  return std::bit_cast<float>((bits + (kDropped + 1) / 2) & ~kDropped);
}

void multiply(Index m, Index n, Index k, float alpha, ConstMatrix a, ConstMatrix b, float beta,
              float* c, Index ldc, Precision precision) {
  for (Index column = 0; column < n; ++column) {
    float* to = c + column * ldc;
    for (Index row = 0; row < m; ++row) to[row] = beta == 0 ? 0.0F : beta * to[row];
  }
  if (alpha == 0) return;

  const Index column_tiles = (n + kColumns - 1) / kColumns;
  std::vector<float> a_panel(static_cast<std::size_t>(kDepth * kRows));
  std::vector<float> b_panel(static_cast<std::size_t>(kDepth * column_tiles * kColumns));
  float sums[kColumns * kRows];
  for (Index first = 0; first < k; first += kDepth) {
    const Index depth = std::min(kDepth, k - first);
    pack_columns(b, n, first, depth, precision, b_panel.data());
    for (Index row = 0; row < m; row += kRows) {
      const Index rows = std::min(kRows, m - row);
      pack_rows(a, row, rows, first, depth, precision, a_panel.data());
      for (Index column = 0; column < n; column += kColumns) {
        tile(rows, depth, a_panel.data(), b_panel.data() + column * depth, sums);
        for (Index j = 0; j < std::min(kColumns, n - column); ++j) {
          float* to = c + (column + j) * ldc + row;
          for (Index i = 0; i < rows; ++i) to[i] += alpha * sums[j * kRows + i];
        }
      }
    }
  }
}

}  // namespace cusim
