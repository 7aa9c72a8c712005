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

/// What a window of each of a group's samples has found: its largest value so far and the number of
/// its place.
struct Best {
  Floats value[kParts];
  Ints place[kParts];
};

LOCKSTEP_INLINE Best first(const float* x, int place) {
  Best best;
  for (int part = 0; part < kParts; ++part) {
    best.value[part] = load(x + part * kLanes);
    best.place[part] = Ints{} + place;
  }
  return best;
}

LOCKSTEP_INLINE void consider(Best& best, const float* x, int place) {
  for (int part = 0; part < kParts; ++part) {
    const Floats value = load(x + part * kLanes);
    const Floats old = best.value[part];
    const Ints wins = ~(value <= old) & (old == old);
    best.value[part] = select(wins, value, old);
    best.place[part] = select(wins, Ints{} + place, best.place[part]);
  }
}

/// Stores values, and places as bytes where `argmax` is not null. The compiler packs the bytes
/// better from a plain loop than by a vector conversion.
LOCKSTEP_INLINE void finish(const Best& best, float* y, std::uint8_t* argmax) {
  for (int part = 0; part < kParts; ++part) store(y + part * kLanes, best.value[part]);
  if (!argmax) return;
  std::int32_t places[kGroup];
  __builtin_memcpy(places, best.place, sizeof places);
  for (int i = 0; i < kGroup; ++i) argmax[i] = static_cast<std::uint8_t>(places[i]);
}

typedef std::int16_t Shorts __attribute__((vector_size(2 * kLanes)));

/// The gradients of a window of each of a group's samples, and the places that get them.
struct Share {
  Floats gradient[kParts];
  Ints winner[kParts];
};

/// By way of 16-bit numbers, as compilers widen neither bytes to a vector at once nor a whole
/// group's bytes without a detour through memory that stalls.
LOCKSTEP_INLINE Share share_of(const float* dy, const std::uint8_t* argmax) {
  std::int16_t places[kGroup];
  for (int i = 0; i < kGroup; ++i) places[i] = argmax[i];
  Share share;
  for (int part = 0; part < kParts; ++part) {
    Shorts winner;
    __builtin_memcpy(&winner, places + part * kLanes, sizeof winner);
    share.winner[part] = __builtin_convertvector(winner, Ints);
    share.gradient[part] = load(dy + part * kLanes);
  }
  return share;
}

/// What goes to place number `place`.
LOCKSTEP_INLINE Floats part_of(const Share& share, int part, int place) {
  return select(share.winner[part] == place, share.gradient[part], Floats{});
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
    const float* window = x + (rows.origin * g.w + columns.origin) * kGroup;
    Best best = first(window + (rows.first * g.w + columns.first) * kGroup,
                      static_cast<int>(rows.first * g.kernel_w + columns.first));
    for (Index r = rows.first; r < rows.end; ++r) {
      for (Index s = columns.first; s < columns.end; ++s) {
        consider(best, window + (r * g.w + s) * kGroup, static_cast<int>(r * g.kernel_w + s));
      }
    }
    finish(best, y + q * kGroup, argmax ? argmax + q * kGroup : nullptr);
  }
}

/// pool_row for windows of 2 x 2, stride 2, wholly inside: `x` is the upper of the two rows.
void pool_row_2x2(const WindowGeometry& g, const float* x, float* y, std::uint8_t* argmax) {
  const float* below = x + g.w * kGroup;
  for (Index q = 0; q < g.q; ++q) {
    const Index at = 2 * q * kGroup;
    Best best = first(x + at, 0);
    consider(best, x + at + kGroup, 1);
    consider(best, below + at, 2);
    consider(best, below + at + kGroup, 3);
    finish(best, y + q * kGroup, argmax ? argmax + q * kGroup : nullptr);
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
    const Share share = share_of(dy + q * kGroup, argmax + q * kGroup);
    for (Index r = rows.first; r < rows.end; ++r) {
      for (Index s = columns.first; s < columns.end; ++s) {
        float* to = dx + ((rows.origin + r) * g.w + columns.origin + s) * kGroup;
        for (int part = 0; part < kParts; ++part, to += kLanes) {
          store(to, load(to) + part_of(share, part, static_cast<int>(r * g.kernel_w + s)));
        }
      }
    }
  }
}

/// spread_row for windows of 2 x 2, stride 2, wholly inside: overwrites both rows.
void spread_row_2x2(const WindowGeometry& g, const float* dy, const std::uint8_t* argmax,
                    float* dx) {
  const Index row = g.w * kGroup;
  for (Index q = 0; q < g.q; ++q) {
    const Share share = share_of(dy + q * kGroup, argmax + q * kGroup);
    float* to = dx + 2 * q * kGroup;
    for (int part = 0; part < kParts; ++part, to += kLanes) {
      store(to, part_of(share, part, 0));
      store(to + kGroup, part_of(share, part, 1));
      store(to + row, part_of(share, part, 2));
      store(to + row + kGroup, part_of(share, part, 3));
    }
  }
  const Index left_over = g.w - 2 * g.q;
  zero(dx + 2 * g.q * kGroup, left_over);
  zero(dx + row + 2 * g.q * kGroup, left_over);
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
