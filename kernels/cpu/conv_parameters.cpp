// Convolution's gradients of weights and bias on groups of 16 samples.
//
//   dw(k, t) = sum over samples and positions of dy(k, position) * x[position + offset(t)]
//
// with the taps t = (c,r,s) of conv.cpp over x with its border of zeros. A tile holds kTileOutputs
// channels by kTileTaps taps in registers while it runs over all positions of a group; lanes are
// samples and stay apart until the end, when sum_each adds them up for a vector of weights at once.
// The order of all sums is fixed by the shapes alone.
#include "lockstep/kernels/cpu/conv_image.h"

namespace lockstep::cpu::LOCKSTEP_CPU_SET {
namespace {

constexpr int kTileOutputs = 4;
constexpr int kTileTaps = kLanes == 16 ? 6 : kLanes == 8 ? 3 : 2;

/// Positions of a group, and how far apart they are in x and dy, in floats.
struct Positions {
  Index rows, columns;
  Index x_row, x_column;
  Index dy_channel, dy_row;
};

/// Writes the sums over a group to `dw` (rows of all `taps` taps), or adds them.
template <int outputs, int width>
void tile(const Positions& all, const float* x, const Index* offsets, const float* dy, Index taps,
          float* dw, bool add) {
  Floats total[outputs][width] = {};
  Index offset[width];
  for (int t = 0; t < width; ++t) offset[t] = offsets[t];
  for (Index part = 0; part < kGroup; part += kLanes) {
    for (Index row = 0; row < all.rows; ++row) {
      const float* x_at = x + row * all.x_row + part;
      const float* dy_at = dy + row * all.dy_row + part;
      for (Index column = 0; column < all.columns; ++column) {
        Floats gradient[outputs];
#pragma GCC unroll 8
        for (int i = 0; i < outputs; ++i) gradient[i] = load(dy_at + i * all.dy_channel);
#pragma GCC unroll 8
        for (int t = 0; t < width; ++t) {
          const Floats value = load(x_at + offset[t]);
#pragma GCC unroll 8
          for (int i = 0; i < outputs; ++i) total[i][t] += gradient[i] * value;
        }
        x_at += all.x_column;
        dy_at += kGroup;
      }
    }
  }
  constexpr int kSums = outputs * width;
  constexpr int kVectors = (kSums + kLanes - 1) / kLanes;
  float sums[kVectors * kLanes];
  for (int first = 0; first < kVectors * kLanes; first += kLanes) {
    Floats vectors[kLanes];
    for (int i = 0; i < kLanes; ++i) {
      vectors[i] = first + i < kSums ? total[(first + i) / width][(first + i) % width] : Floats{};
    }
    store(sums + first, sum_each(vectors));
  }
  for (int i = 0; i < outputs; ++i) {
    for (int t = 0; t < width; ++t) {
      float& to = dw[i * taps + t];
      to = add ? to + sums[i * width + t] : sums[i * width + t];
    }
  }
}

template <int outputs, int width = kTileTaps>
void tile_of_taps(Index wanted, const Positions& all, const float* x, const Index* offsets,
                  const float* dy, Index taps, float* dw, bool add) {
  if constexpr (width > 1) {
    if (wanted < width)
      return tile_of_taps<outputs, width - 1>(wanted, all, x, offsets, dy, taps, dw, add);
  }
  tile<outputs, width>(all, x, offsets, dy, taps, dw, add);
}

/// All taps of 1 to kTileOutputs output channels, in tiles of nearly equal widths.
template <int outputs = kTileOutputs>
void all_taps(Index wanted, const Positions& all, const float* x, const Index* offsets,
              const float* dy, Index taps, float* dw, bool add) {
  if constexpr (outputs > 1) {
    if (wanted < outputs) return all_taps<outputs - 1>(wanted, all, x, offsets, dy, taps, dw, add);
  }
  Index first = 0;
  for (Index tiles = (taps + kTileTaps - 1) / kTileTaps; tiles > 0; --tiles) {
    const Index width = (taps - first + tiles - 1) / tiles;
    tile_of_taps<outputs>(width, all, x, offsets + first, dy, taps, dw + first, add);
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

void conv_backward_parameters(const WindowGeometry& g, const float* x, const float* dy, float* dw,
                              float* db, bool accumulate, void* workspace) {
  const Workspace space = split_workspace(g, workspace);
  const Border border = border_of_x(g);
  const Image image{g.c, g.h, g.w};
  const Image in = with_border(image, border);
  const Index taps = x_tap_offsets(g, space.offsets);
  const Index channel = g.p * g.q * kGroup;
  const Positions all{.rows = g.p,
                      .columns = g.q,
                      .x_row = g.stride_h * in.w * kGroup,
                      .x_column = g.stride_w * kGroup,
                      .dy_channel = channel,
                      .dy_row = g.q * kGroup};
  for (Index group = 0; group < g.groups; ++group) {
    const bool add = accumulate || group > 0;
    const float* from = bordered(image, border, x + group * floats_in(image), space.image);
    const float* gradient = dy + group * g.k * channel;
    for (Index k = 0; k < g.k; k += kTileOutputs) {
      const Index outputs = g.k - k < kTileOutputs ? g.k - k : kTileOutputs;
      all_taps(outputs, all, from, space.offsets, gradient + k * channel, taps, dw + k * taps, add);
    }
    for (Index k = 0; db && k < g.k; ++k) {
      const float sum = sum_of(channel, gradient + k * channel);
      db[k] = add ? db[k] + sum : sum;
    }
  }
}

}  // namespace lockstep::cpu::LOCKSTEP_CPU_SET
