// Convolution's gradients of weights and bias on groups of 16 samples.
//
//   dw(k, t) = sum over samples and positions of dy(k, position) * x[position + offset(t)]
//
// with the taps t = (c,r,s) of conv_tile.h over x with its border of zeros. A tile holds
// kTileOutputs channels by kTileTaps taps in registers while it runs over some rows of positions:
// so many that the rows of dy and x stay in a near cache for all taps. In between the sums
// wait in memory, a vector each: lanes are samples and stay apart until the end, when sum_each adds
// them up for a vector of weights at once. The order of all sums is fixed by the shapes alone.
#include "lockstep/kernels/cpu/conv_parameters.h"

namespace lockstep::cpu::LOCKSTEP_CPU_SET {
namespace {

constexpr int kTileOutputs = 4;
constexpr int kTileTaps = kLanes == 16 ? 6 : kLanes == 8 ? 3 : 2;

/// What the rows of positions may fill. The larger tile asks the cache for 10 vectors in 24
/// multiply-adds, which the second level gives too (cores with AVX-512 have 512 KiB of it or more):
/// there longer runs are worth more.
constexpr Index kRowFloats = kLanes == 16 ? 3 * kCacheFloats : kCacheFloats;

/// Writes the sums over some rows to `sums`, [outputs][all `taps` taps][lanes], or adds them.
template <int outputs, int width>
void tile(const Positions& some, const float* x, const Index* offsets, const float* dy, Index taps,
          float* sums, bool add) {
  Floats total[outputs][width];
  for (int i = 0; i < outputs; ++i) {
    for (int t = 0; t < width; ++t)
      total[i][t] = add ? load(sums + (i * taps + t) * kLanes) : Floats{};
  }
  Index offset[width];
  for (int t = 0; t < width; ++t) offset[t] = offsets[t];
  // Loops that run at least once, so that the sums never leave the registers.
  int part = 0;
  do {
    const float* x_row = x + part * kLanes;
    const float* dy_row = dy + part * kLanes;
    Index rows = some.rows;
    do {
      const float* x_at = x_row;
      const float* dy_at = dy_row;
      Index columns = some.columns;
      do {
        Floats gradient[outputs];
#pragma GCC unroll 8
        for (int i = 0; i < outputs; ++i) gradient[i] = load(dy_at + i * some.dy_channel);
#pragma GCC unroll 8
        for (int t = 0; t < width; ++t) {
          const Floats value = load(x_at + offset[t]);
#pragma GCC unroll 8
          for (int i = 0; i < outputs; ++i) total[i][t] += gradient[i] * value;
        }
        x_at += some.x_column;
        dy_at += some.dy_column;
      } while (--columns > 0);
      x_row += some.x_row;
      dy_row += some.dy_row;
    } while (--rows > 0);
  } while (++part < some.parts);
  for (int i = 0; i < outputs; ++i) {
    for (int t = 0; t < width; ++t) store(sums + (i * taps + t) * kLanes, total[i][t]);
  }
}

template <int outputs, int width = kTileTaps>
void tile_of_taps(Index wanted, const Positions& some, const float* x, const Index* offsets,
                  const float* dy, Index taps, float* sums, bool add) {
  if constexpr (width > 1) {
    if (wanted < width)
      return tile_of_taps<outputs, width - 1>(wanted, some, x, offsets, dy, taps, sums, add);
  }
  tile<outputs, width>(some, x, offsets, dy, taps, sums, add);
}

/// All taps of 1 to kTileOutputs output channels, in tiles of nearly equal widths.
template <int outputs = kTileOutputs>
void all_taps(Index wanted, const Positions& some, const float* x, const Index* offsets,
              const float* dy, Index taps, float* sums, bool add) {
  if constexpr (outputs > 1) {
    if (wanted < outputs)
      return all_taps<outputs - 1>(wanted, some, x, offsets, dy, taps, sums, add);
  }
  Index first = 0;
  for (Index tiles = (taps + kTileTaps - 1) / kTileTaps; tiles > 0; --tiles) {
    const Index width = (taps - first + tiles - 1) / tiles;
    tile_of_taps<outputs>(width, some, x, offsets + first, dy, taps, sums + first * kLanes, add);
    first += width;
  }
}

/// Sum of `count` floats, a multiple of 16, by several sums side by side.
float sum_of(Index count, const float* from) {
  Floats total[4] = {};
  for (Index i = 0; i < count; i += kGroup) {
    for (int part = 0; part < kParts; ++part) total[part] += load(from + i + part * kLanes);
  }
  return sum_lanes((total[0] + total[1]) + (total[2] + total[3]));
}

}  // namespace

void add_parameter_sums(const Positions& some, Index outputs, const float* x, const Index* offsets,
                        const float* dy, Index taps, float* sums, bool add) {
  for (Index k = 0; k < outputs; k += kTileOutputs) {
    all_taps(smaller(outputs - k, kTileOutputs), some, x, offsets, dy + k * some.dy_channel, taps,
             sums + k * taps * kLanes, add);
  }
}

void sum_vectors(Index count, const float* vectors, float* to, bool add) {
  for (Index first = 0; first < count; first += kLanes) {
    const Index here = smaller(kLanes, count - first);
    Floats v[kLanes];
    for (Index i = 0; i < kLanes; ++i)
      v[i] = i < here ? load(vectors + (first + i) * kLanes) : Floats{};
    float sums[kLanes];
    store(sums, sum_each(v));
    for (Index i = 0; i < here; ++i) to[first + i] = add ? to[first + i] + sums[i] : sums[i];
  }
}

void conv_backward_parameters(const WindowGeometry& g, const float* x, const float* dy, float* dw,
                              float* db, bool accumulate, void* workspace) {
  const Workspace space = split_workspace(g, workspace);
  const Border border = border_of_x(g);
  const Image in = channels_of_rows(g.c, g.h, g.w, border);
  const Index taps = x_tap_offsets(g, in, space.offsets);
  const Index channel = g.p * g.q * kGroup;
  const Index rows = larger(
      1, (kRowFloats - g.kernel_h * in.row) / (kTileOutputs * g.q * kGroup + g.stride_h * in.row));
  for (Index group = 0; group < g.groups; ++group) {
    add_border(in, border, x + group * g.c * g.h * g.w * kGroup, space.image);
    const float* gradient = dy + group * g.k * channel;
    for (Index row = 0; row < g.p; row += rows) {
      const Positions some{.parts = kParts,
                           .rows = smaller(rows, g.p - row),
                           .columns = g.q,
                           .x_row = g.stride_h * in.row,
                           .x_column = g.stride_w * kGroup,
                           .dy_channel = channel,
                           .dy_row = g.q * kGroup,
                           .dy_column = kGroup};
      add_parameter_sums(some, g.k, space.image + row * some.x_row, space.offsets,
                         gradient + row * some.dy_row, taps, space.weights, group > 0 || row > 0);
    }
    for (Index k = 0; db && k < g.k; ++k) {
      const float sum = sum_of(channel, gradient + k * channel);
      db[k] = accumulate || group > 0 ? db[k] + sum : sum;
    }
  }
  sum_vectors(g.k * taps, space.weights, dw, accumulate);
}

}  // namespace lockstep::cpu::LOCKSTEP_CPU_SET
