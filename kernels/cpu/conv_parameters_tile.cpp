// A tile of convolution's gradients of weights and bias; conv_parameters_tile.h says how.
#include "lockstep/kernels/cpu/conv_parameters_tile.h"

namespace lockstep::cpu::LOCKSTEP_CPU_SET {
namespace {

constexpr int kMostOutputs = kLanes == 16 ? 6 : 4;

/// The most taps of a tile: of 24, 12 or 8 sums.
constexpr int tile_taps(int outputs) {
  return kLanes == 16 ? (outputs > 4 ? 4 : 6) : kLanes == 8 ? 3 : 2;
}

/// The same with sums of the bias gradient.
constexpr int bias_taps(int outputs) {
  return tile_taps(outputs) - 1;
}

LOCKSTEP_INLINE Taps after(const Taps& taps, Index count) {
  return {taps.count - count, taps.x + count, taps.sum + count};
}

/// `dense`: x is read without gaps. Then a position's vectors of samples follow each other, so that
/// lines of memory are read whole; else one vector of all positions follows the other.
template <bool dense, int outputs, int width, bool with_bias>
void tile(const Positions& some, const float* x, const float* dy, const Taps& taps,
          const Sums& sums) {
  Index offset[width];
  Index place[width];
#pragma GCC unroll 8
  for (int t = 0; t < width; ++t) {
    offset[t] = taps.x[t];
    place[t] = taps.sum[t];
  }
  Floats total[outputs][width] = {};
  Floats bias[outputs] = {};
  if (sums.begun) {
#pragma GCC unroll 8
    for (int i = 0; i < outputs; ++i) {
#pragma GCC unroll 8
      for (int t = 0; t < width; ++t) total[i][t] = load(sums.weights + i * sums.filter + place[t]);
      if (with_bias) bias[i] = load(sums.bias + i * kLanes);
    }
  }
  // Loops that run at least once, so that the sums never leave the registers.
  constexpr int kVectors = dense ? kParts : 1;
  int part = 0;
  do {
    const float* x_row = x + part * kLanes;
    const float* dy_row = dy + part * kLanes;
    Index rows = some.rows;
    do {
      const float* x_at = x_row;
      const float* dy_at = dy_row;
      Index columns = some.columns * kVectors;
      do {
        Floats gradient[outputs];
#pragma GCC unroll 8
        for (int i = 0; i < outputs; ++i) {
          gradient[i] = load(dy_at + i * some.dy_channel);
          if (with_bias) bias[i] += gradient[i];
        }
#pragma GCC unroll 8
        for (int t = 0; t < width; ++t) {
          const Floats value = load(x_at + offset[t]);
#pragma GCC unroll 8
          for (int i = 0; i < outputs; ++i) total[i][t] += gradient[i] * value;
        }
        x_at += dense ? kLanes : some.x_column;
        dy_at += dense ? kLanes : kGroup;
      } while (--columns > 0);
      x_row += some.x_row;
      dy_row += some.dy_row;
    } while (--rows > 0);
    part += kVectors;
  } while (part < kParts);
  float* filter = sums.weights;
  const Index next_filter = sums.filter;
#pragma GCC unroll 8
  for (int i = 0; i < outputs; ++i, filter += next_filter) {
#pragma GCC unroll 8
    for (int t = 0; t < width; ++t) store(filter + place[t], total[i][t]);
    if (with_bias) store(sums.bias + i * kLanes, bias[i]);
  }
}

template <bool dense, int outputs, bool with_bias,
          int width = with_bias ? bias_taps(outputs) : tile_taps(outputs)>
void tile_of_taps(Index wanted, const Positions& some, const float* x, const float* dy,
                  const Taps& taps, const Sums& sums) {
  if constexpr (width > 1) {
    if (wanted < width)
      return tile_of_taps<dense, outputs, with_bias, width - 1>(wanted, some, x, dy, taps, sums);
  }
  tile<dense, outputs, width, with_bias>(some, x, dy, taps, sums);
}

/// In tiles of nearly equal widths.
template <bool dense, int outputs = kMostOutputs>
void all_taps(Index wanted, const Positions& some, const float* x, const float* dy, Taps taps,
              const Sums& sums) {
  if constexpr (outputs > 1) {
    if (wanted < outputs) return all_taps<dense, outputs - 1>(wanted, some, x, dy, taps, sums);
  }
  if (sums.bias) {
    const Index width = smaller(taps.count, bias_taps(outputs));
    tile_of_taps<dense, outputs, true>(width, some, x, dy, taps, sums);
    taps = after(taps, width);
  }
  constexpr int kTaps = tile_taps(outputs);
  for (Index tiles = (taps.count + kTaps - 1) / kTaps; tiles > 0; --tiles) {
    const Index width = (taps.count + tiles - 1) / tiles;
    tile_of_taps<dense, outputs, false>(width, some, x, dy, taps, sums);
    taps = after(taps, width);
  }
}

}  // namespace

Index gradient_outputs(Index outputs, Index first) {
  const Index left = outputs - first;
  if (kLanes == 16) return left <= kMostOutputs ? left : kUsualOutputs;
  const Index tiles = (left + kMostOutputs - 1) / kMostOutputs;  // of nearly equal sizes
  return (left + tiles - 1) / tiles;
}

void sum_taps(Index outputs, const Positions& some, const float* x, const float* dy, Taps taps,
              const Sums& sums) {
  const auto sum = some.x_column == kGroup ? all_taps<true> : all_taps<false>;
  sum(outputs, some, x, dy, taps, sums);
}

}  // namespace lockstep::cpu::LOCKSTEP_CPU_SET
