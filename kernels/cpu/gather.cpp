// Gathers samples of a data set into Layout::n16: 16 rows become 16 lanes.
#include "lockstep/kernels/cpu/set.h"
#include "lockstep/kernels/cpu/simd.h"

namespace lockstep::cpu::LOCKSTEP_CPU_SET {
namespace {

typedef std::uint8_t Row16 __attribute__((vector_size(kGroup)));

LOCKSTEP_INLINE Row16 load_row(const std::uint8_t* from) {
  Row16 value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

LOCKSTEP_INLINE Row16 interleave_low(Row16 a, Row16 b) {
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}

LOCKSTEP_INLINE Row16 interleave_high(Row16 a, Row16 b) {
  return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15,
                                 31);
}

/// `to` = `from` interleaved: the byte at (row, column) of the 16 x 16 bytes, an 8-bit address,
/// moves to that address with both halves shifted by one bit into each other. Four of these
/// exchange rows and columns.
LOCKSTEP_INLINE void interleave(const Row16 (&from)[kGroup], Row16 (&to)[kGroup]) {
  for (int row = 0; row < kGroup / 2; ++row) {
    to[2 * row] = interleave_low(from[row], from[row + kGroup / 2]);
    to[2 * row + 1] = interleave_high(from[row], from[row + kGroup / 2]);
  }
}

/// The rows of a group's samples, null where a place has none.
template <class T>
struct Rows {
  const T* row[kGroup];
};

template <class T>
LOCKSTEP_INLINE Rows<T> rows_of(const T* samples, const std::int32_t* sample_index,
                                std::int64_t features) {
  Rows<T> rows;
  for (int lane = 0; lane < kGroup; ++lane) {
    rows.row[lane] = sample_index[lane] < 0 ? nullptr : samples + sample_index[lane] * features;
  }
  return rows;
}

void bytes(std::int64_t groups, std::int64_t features, const std::int32_t* sample_index,
           const std::uint8_t* samples, float scale, float* x) {
  for (std::int64_t group = 0; group < groups; ++group) {
    const Rows<std::uint8_t> rows = rows_of(samples, sample_index + group * kGroup, features);
    std::int64_t e = 0;
    for (; e + kGroup <= features; e += kGroup) {
      Row16 a[kGroup];
      Row16 b[kGroup];
      for (int lane = 0; lane < kGroup; ++lane) {
        a[lane] = rows.row[lane] == nullptr ? Row16{} : load_row(rows.row[lane] + e);
      }
      interleave(a, b);
      interleave(b, a);
      interleave(a, b);
      interleave(b, a);
      std::uint8_t transposed[kGroup * kGroup];
      __builtin_memcpy(transposed, a, sizeof transposed);
      float* to = x + (group * features + e) * kGroup;
      for (int i = 0; i < kGroup * kGroup; ++i) to[i] = static_cast<float>(transposed[i]) * scale;
    }
    for (; e < features; ++e) {
      float* to = x + (group * features + e) * kGroup;
      for (int lane = 0; lane < kGroup; ++lane) {
        to[lane] = rows.row[lane] == nullptr ? 0.0F : static_cast<float>(rows.row[lane][e]) * scale;
      }
    }
  }
}

void floats(std::int64_t groups, std::int64_t features, const std::int32_t* sample_index,
            const float* samples, float* x) {
  for (std::int64_t group = 0; group < groups; ++group) {
    const Rows<float> rows = rows_of(samples, sample_index + group * kGroup, features);
    for (std::int64_t e = 0; e < features; ++e) {
      float* to = x + (group * features + e) * kGroup;
      for (int lane = 0; lane < kGroup; ++lane)
        to[lane] = rows.row[lane] == nullptr ? 0.0F : rows.row[lane][e];
    }
  }
}

}  // namespace

const GatherKernels gather_kernels = {.bytes = bytes, .floats = floats};

}  // namespace lockstep::cpu::LOCKSTEP_CPU_SET
