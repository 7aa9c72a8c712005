// Max-pooling on groups of 16 samples.
//
// Every window is walked in the order of its places; a place takes over where its value is larger,
// or where it is the first NaN: "not (value <= best)" says both, as a comparison with NaN is false,
// once the lanes whose best is NaN are left out. The winner's number travels beside its value, in
// lanes of the same width, and is stored as a byte.
//
// Backward, a window gives dy to the place whose number was stored. Windows that neither overlap
// nor leave the image write each of their places once; others start from zeros and add, windows in
// order.
#include "lockstep/kernels/cpu/set.h"
#include "lockstep/kernels/cpu/simd.h"

namespace lockstep::cpu::LOCKSTEP_CPU_SET {
namespace {

using Index = std::int64_t;

typedef std::uint8_t Bytes __attribute__((vector_size(kLanes)));

LOCKSTEP_INLINE Ints load_numbers(const std::uint8_t* from) {
  Bytes bytes;
  __builtin_memcpy(&bytes, from, sizeof bytes);
  return __builtin_convertvector(bytes, Ints);
}

LOCKSTEP_INLINE void store_numbers(std::uint8_t* to, Ints numbers) {
  const Bytes bytes = __builtin_convertvector(numbers, Bytes);
  __builtin_memcpy(to, &bytes, sizeof bytes);
}

/// Largest value so far and the number of its place.
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
  Index first, end, origin;
};

Span span_of(Index output, Index stride, Index pad, Index kernel, Index extent) {
  const Index origin = output * stride - pad;
  return {origin < 0 ? -origin : 0, origin + kernel > extent ? extent - origin : kernel, origin};
}

void pool_row(const WindowGeometry& g, const Span& rows, const float* x, float* y,
              std::uint8_t* argmax) {
  for (Index q = 0; q < g.q; ++q) {
    const Span columns = span_of(q, g.stride_w, g.pad_left, g.kernel_w, g.w);
    for (int part = 0; part < kGroup; part += kLanes) {
      const float* window = x + (rows.origin * g.w + columns.origin) * kGroup + part;
      Best best{load(window + (rows.first * g.w + columns.first) * kGroup),
                Ints{} + static_cast<int>(rows.first * g.kernel_w + columns.first)};
      for (Index r = rows.first; r < rows.end; ++r) {
        for (Index s = columns.first; s < columns.end; ++s) {
          consider(best, load(window + (r * g.w + s) * kGroup),
                   static_cast<int>(r * g.kernel_w + s));
        }
      }
      store(y + q * kGroup + part, best.value);
      if (argmax) store_numbers(argmax + q * kGroup + part, best.place);
    }
  }
}

/// pool_row for windows of 2 x 2, stride 2, wholly inside: `x` is the upper of the two rows.
void pool_row_2x2(const WindowGeometry& g, const float* x, float* y, std::uint8_t* argmax) {
  const float* below = x + g.w * kGroup;
  for (Index at = 0; at < g.q * kGroup; at += kLanes) {
    const Index in = at / kGroup * 2 * kGroup + at % kGroup;
    Best best{load(x + in), Ints{}};
    consider(best, load(x + in + kGroup), 1);
    consider(best, load(below + in), 2);
    consider(best, load(below + in + kGroup), 3);
    store(y + at, best.value);
    if (argmax) store_numbers(argmax + at, best.place);
  }
}

bool is_2x2(const WindowGeometry& g) {
  return g.kernel_h == 2 && g.kernel_w == 2 && g.stride_h == 2 && g.stride_w == 2 &&
         g.pad_top == 0 && g.pad_left == 0 && 2 * g.p <= g.h && 2 * g.q <= g.w;
}

void forward(const WindowGeometry& g, const float* x, float* y, std::uint8_t* argmax) {
  const bool simple = is_2x2(g);
  for (Index image = 0; image < g.groups * g.c; ++image) {
    for (Index p = 0; p < g.p; ++p) {
      if (simple) {
        pool_row_2x2(g, x + 2 * p * g.w * kGroup, y, argmax);
      } else {
        pool_row(g, span_of(p, g.stride_h, g.pad_top, g.kernel_h, g.h), x, y, argmax);
      }
      y += g.q * kGroup;
      if (argmax) argmax += g.q * kGroup;
    }
    x += g.h * g.w * kGroup;
  }
}

void zero(float* to, Index places) {
  __builtin_memset(to, 0, sizeof(float) * static_cast<std::size_t>(places * kGroup));
}

void spread_row(const WindowGeometry& g, const Span& rows, const float* dy,
                const std::uint8_t* argmax, float* dx) {
  for (Index q = 0; q < g.q; ++q) {
    const Span columns = span_of(q, g.stride_w, g.pad_left, g.kernel_w, g.w);
    for (int part = 0; part < kGroup; part += kLanes) {
      const Floats gradient = load(dy + q * kGroup + part);
      const Ints winner = load_numbers(argmax + q * kGroup + part);
      for (Index r = rows.first; r < rows.end; ++r) {
        for (Index s = columns.first; s < columns.end; ++s) {
          float* to = dx + ((rows.origin + r) * g.w + columns.origin + s) * kGroup + part;
          const Ints won = winner == static_cast<int>(r * g.kernel_w + s);
          store(to, load(to) + select(won, gradient, Floats{}));
        }
      }
    }
  }
}

/// spread_row for windows of 2 x 2, stride 2, wholly inside: overwrites both rows.
void spread_row_2x2(const WindowGeometry& g, const float* dy, const std::uint8_t* argmax,
                    float* dx) {
  float* below = dx + g.w * kGroup;
  for (Index at = 0; at < g.q * kGroup; at += kLanes) {
    const Index out = at / kGroup * 2 * kGroup + at % kGroup;
    const Floats gradient = load(dy + at);
    const Ints winner = load_numbers(argmax + at);
    store(dx + out, select(winner == 0, gradient, Floats{}));
    store(dx + out + kGroup, select(winner == 1, gradient, Floats{}));
    store(below + out, select(winner == 2, gradient, Floats{}));
    store(below + out + kGroup, select(winner == 3, gradient, Floats{}));
  }
  const Index left_over = g.w - 2 * g.q;
  zero(dx + 2 * g.q * kGroup, left_over);
  zero(below + 2 * g.q * kGroup, left_over);
}

void backward(const WindowGeometry& g, const float* dy, const std::uint8_t* argmax, float* dx) {
  const bool simple = is_2x2(g);
  for (Index image = 0; image < g.groups * g.c; ++image) {
    if (simple) {
      zero(dx + 2 * g.p * g.w * kGroup, (g.h - 2 * g.p) * g.w);
    } else {
      zero(dx, g.h * g.w);
    }
    for (Index p = 0; p < g.p; ++p) {
      if (simple) {
        spread_row_2x2(g, dy, argmax, dx + 2 * p * g.w * kGroup);
      } else {
        spread_row(g, span_of(p, g.stride_h, g.pad_top, g.kernel_h, g.h), dy, argmax, dx);
      }
      dy += g.q * kGroup;
      argmax += g.q * kGroup;
    }
    dx += g.h * g.w * kGroup;
  }
}

}  // namespace

const PoolKernels pool_kernels = {
    .forward = forward,
    .backward = backward,
};

}  // namespace lockstep::cpu::LOCKSTEP_CPU_SET
