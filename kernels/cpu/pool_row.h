// Max-pooling of one row of windows, for a vector of samples.
//
// Every window is walked in the order of its places; a place takes over where its value is larger,
// or where it is the first NaN: "not (value <= best)" says both, as a comparison with NaN is false,
// once the lanes whose best is NaN are left out. The winner's number travels beside its value, in
// lanes of the same width, and is stored as a byte.
#pragma once

#include "lockstep/kernels/cpu/kernels.h"
#include "lockstep/kernels/cpu/simd.h"

namespace lockstep::cpu::LOCKSTEP_CPU_SET {

/// What a window of each sample has found: its largest value so far and the number of its place.
struct Best {
  Floats value;
  Ints place;
};

LOCKSTEP_INLINE void consider(Best& best, Floats value, int place) {
  const Ints wins = ~(value <= best.value) & (best.value == best.value);
  best.value = select(wins, value, best.value);
  best.place = select(wins, Ints{} + place, best.place);
}

/// The places of a window that lie inside the image, along one axis: [first, end), and where place
/// 0 would lie.
struct Span {
  std::int64_t first, end, origin;
};

LOCKSTEP_INLINE Span span_of(std::int64_t output, std::int64_t stride, std::int64_t pad,
                             std::int64_t kernel, std::int64_t extent) {
  const std::int64_t origin = output * stride - pad;
  return {origin < 0 ? -origin : 0, origin + kernel > extent ? extent - origin : kernel, origin};
}

/// Windows of 2 x 2, stride 2, wholly inside.
LOCKSTEP_INLINE bool is_2x2(const WindowGeometry& g) {
  return g.kernel_h == 2 && g.kernel_w == 2 && g.stride_h == 2 && g.stride_w == 2 &&
         g.pad_top == 0 && g.pad_left == 0 && 2 * g.p <= g.h && 2 * g.q <= g.w;
}

LOCKSTEP_INLINE Best best_of_4(const float* x, std::int64_t row, std::int64_t column) {
  Best best{load(x), Ints{}};
  consider(best, load(x + column), 1);
  consider(best, load(x + row), 2);
  consider(best, load(x + row + column), 3);
  return best;
}

LOCKSTEP_INLINE Best best_of(const WindowGeometry& g, const Span& rows, const Span& columns,
                             const float* window, std::int64_t row, std::int64_t column) {
  Best best{load(window + rows.first * row + columns.first * column),
            Ints{} + static_cast<int>(rows.first * g.kernel_w + columns.first)};
  for (std::int64_t r = rows.first; r < rows.end; ++r) {
    for (std::int64_t s = columns.first; s < columns.end; ++s) {
      consider(best, load(window + r * row + s * column), static_cast<int>(r * g.kernel_w + s));
    }
  }
  return best;
}

LOCKSTEP_INLINE void finish(Best best, bool relu, float* y, std::uint8_t* argmax) {
  if (relu) {
    const Ints cut_off = best.value <= 0;  // then all places are 0, and the first of them wins
    best.value = select(cut_off, Floats{}, best.value);
    best.place = select(cut_off, Ints{}, best.place);
  }
  store(y, best.value);
  if (argmax) store_low_bytes(argmax, best.place, AllLanes{});
}

/// Pools one row of windows that takes in `rows`. `x` is the image's row rows.origin, whose rows
/// and columns lie `row` and `column` floats apart; windows of y and argmax, which may be null, lie
/// 16 apart. With `relu`, values below zero become zero.
LOCKSTEP_INLINE void pool_row(const WindowGeometry& g, const Span& rows, const float* x,
                              std::int64_t row, std::int64_t column, bool relu, float* y,
                              std::uint8_t* argmax) {
  if (is_2x2(g)) {
    for (std::int64_t q = 0; q < g.q; ++q) {
      finish(best_of_4(x + 2 * q * column, row, column), relu, y + q * kGroup,
             argmax ? argmax + q * kGroup : nullptr);
    }
    return;
  }
  for (std::int64_t q = 0; q < g.q; ++q) {
    const Span columns = span_of(q, g.stride_w, g.pad_left, g.kernel_w, g.w);
    finish(best_of(g, rows, columns, x + columns.origin * column, row, column), relu,
           y + q * kGroup, argmax ? argmax + q * kGroup : nullptr);
  }
}

}  // namespace lockstep::cpu::LOCKSTEP_CPU_SET
