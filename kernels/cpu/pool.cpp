// Max-pooling on groups of 16 samples; pool_row.h says how a window finds its largest place.
//
// Backward, a window gives dy to the place whose number was stored. Windows that neither overlap
// nor leave the image write each of their places once; others start from zeros and add, windows in
// order.
#include "lockstep/kernels/cpu/numbers.h"
#include "lockstep/kernels/cpu/pool_row.h"
#include "lockstep/kernels/cpu/set.h"

namespace lockstep::cpu::LOCKSTEP_CPU_SET {
namespace {

/// The gradients of a window of each of a group's samples, and the places that get them.
struct Share {
  Floats gradient[kParts];
  Ints winner[kParts];
};

LOCKSTEP_INLINE Share share_of(const float* dy, const std::uint8_t* argmax) {
  Share share;
  for (int part = 0; part < kParts; ++part) {
    share.winner[part] = load_bytes(argmax + part * kLanes);
    share.gradient[part] = load(dy + part * kLanes);
  }
  return share;
}

/// What goes to place number `place`.
LOCKSTEP_INLINE Floats part_of(const Share& share, int part, int place) {
  return select(share.winner[part] == place, share.gradient[part], Floats{});
}

void forward(const WindowGeometry& g, const float* x, float* y, std::uint8_t* argmax) {
  for (Index image = 0; image < g.groups * g.c; ++image) {
    for (Index p = 0; p < g.p; ++p) {
      const Span rows = span_of(p, g.stride_h, g.pad_top, g.kernel_h, g.h);
      for (int part = 0; part < kGroup; part += kLanes) {
        pool_row(g, rows, x + rows.origin * g.w * kGroup + part, g.w * kGroup, kGroup, false,
                 y + part, argmax ? argmax + part : nullptr);
      }
      y += g.q * kGroup;
      if (argmax) argmax += g.q * kGroup;
    }
    x += g.h * g.w * kGroup;
  }
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
  zero(dx + 2 * g.q * kGroup, left_over * kGroup);
  zero(dx + row + 2 * g.q * kGroup, left_over * kGroup);
}

void backward(const WindowGeometry& g, const float* dy, const std::uint8_t* argmax, float* dx) {
  const bool simple = is_2x2(g);
  for (Index image = 0; image < g.groups * g.c; ++image) {
    if (simple) {
      zero(dx + 2 * g.p * g.w * kGroup, (g.h - 2 * g.p) * g.w * kGroup);
    } else {
      zero(dx, g.h * g.w * kGroup);
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
