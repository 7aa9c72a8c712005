// Convolution of few channels [+ ReLU] + max-pooling, a window at a time in registers.
//
// With few channels an output is a short sum: to store it, or to spread its gradient over the rows
// of the convolution, costs as much as to compute it. So nothing in between goes to memory. Lanes
// are samples.
//
//   x under a window of 2 x 2,    Forward: the window's four sums of some outputs. Every tap has
//   kernel 3 x 3: a patch of      four vectors of x, one a place of the window, for all outputs;
//   4 x 4 vectors                 then the four are compared where they are.
//   . . . . . .
//   . +-----+ .                   Weight gradient: the window's gradient, in four vectors of which
//   . | a b | .                   each sample has one that is not 0, the winning place's. A tap's
//   . | c d | .                   sum takes four multiply-adds; sums stay for all windows.
//   . +-----+ .
//   . . . . . .
#include "lockstep/kernels/cpu/conv_image.h"
#include "lockstep/kernels/cpu/conv_parameters.h"
#include "lockstep/kernels/cpu/conv_pool.h"
#include "lockstep/kernels/cpu/pool_row.h"

namespace lockstep::cpu::LOCKSTEP_CPU_SET {
namespace {

/// The parts of the workspace.
struct Space {
  float* weights;  ///< packed for the tiles, or a vector of sums for each weight
  float* image;    ///< one group's x with its border
};

Index weight_floats(const WindowGeometry& conv) {
  return conv.k * conv.c * conv.kernel_h * conv.kernel_w * kLanes;
}

Space split(const WindowGeometry& conv, void* workspace) {
  auto* weights = static_cast<float*>(workspace);
  return {weights, weights + weight_floats(conv)};
}

/// Outputs of a tile of the forward pass: with the window's places they are the sums in registers.
constexpr int kOutputs = kLanes == 16 ? 6 : 2;

/// Forward for one row of windows of 2 x 2.
struct WindowRow {
  Index channels, windows;
  Index channel, row;    ///< distances in x with its border
  const float* weights;  ///< [c][r][s][outputs of the tile]
  const float* bias;     ///< [outputs] or null
  bool relu;
  Index plane;  ///< from one output to the next, in y and argmax
};

template <int kernel, int outputs>
[[gnu::noinline]] void row_of_windows(const WindowRow& some, const float* x, float* y,
                                      std::uint8_t* argmax) {
  Floats bias[outputs];
  for (int i = 0; i < outputs; ++i) bias[i] = some.bias ? broadcast(some.bias[i]) : Floats{};
  for (Index q = 0; q < some.windows; ++q, x += 2 * kLanes) {
    Floats total[outputs][4];
#pragma GCC unroll 8
    for (int i = 0; i < outputs; ++i) {
#pragma GCC unroll 4
      for (int place = 0; place < 4; ++place) total[i][place] = bias[i];
    }
    const float* weights = some.weights;
    const float* from = x;
    Index c = some.channels;
    do {
#pragma GCC unroll 5
      for (int r = 0; r < kernel; ++r) {
#pragma GCC unroll 5
        for (int s = 0; s < kernel; ++s, weights += outputs) {
          Floats value[4];
#pragma GCC unroll 4
          for (int place = 0; place < 4; ++place)
            value[place] = load(from + (r + place / 2) * some.row + (s + place % 2) * kLanes);
#pragma GCC unroll 8
          for (int i = 0; i < outputs; ++i) {
            const Floats weight = broadcast(weights[i]);
#pragma GCC unroll 4
            for (int place = 0; place < 4; ++place) total[i][place] += value[place] * weight;
          }
        }
      }
      from += some.channel;
    } while (--c > 0);
#pragma GCC unroll 8
    for (int i = 0; i < outputs; ++i) {
      Best best{total[i][0], Ints{}};
#pragma GCC unroll 4
      for (int place = 1; place < 4; ++place) consider(best, total[i][place], place);
      const Index at = i * some.plane + q * kGroup;
      finish(best, some.relu, y + at, argmax ? argmax + at : nullptr);
    }
  }
}

template <int kernel, int outputs = kOutputs>
void rows_of_outputs(Index wanted, const WindowRow& some, const float* x, float* y,
                     std::uint8_t* argmax) {
  if constexpr (outputs > 1) {
    if (wanted < outputs) return rows_of_outputs<kernel, outputs - 1>(wanted, some, x, y, argmax);
  }
  row_of_windows<kernel, outputs>(some, x, y, argmax);
}

/// Outputs of the tile that begins at `first`: tiles are of nearly equal widths.
Index outputs_at(Index outputs, Index first) {
  const Index left = outputs - first;
  const Index tiles = (left + kOutputs - 1) / kOutputs;
  return (left + tiles - 1) / tiles;
}

/// The windows of one vector of samples whose gradients are summed.
struct Windows {
  bool relu;
  Index rows, columns;
  Index x_row, dy_row;  ///< from one row of the convolution, or of windows, to the next
  const float* dy;
  const float* y;
  const std::uint8_t* argmax;
  Index plane;  ///< from one output to the next in these three
};

/// Adds to the sums of `taps` rows of the kernel for some outputs: [outputs][all taps][lanes].
template <int kernel, int pool, int taps, int outputs>
[[gnu::noinline]] void add_windows(const Windows& some, const float* x, float* sums,
                                   Index all_taps) {
  constexpr int kPlaces = pool * pool;
  Floats total[outputs][taps][kernel];
  for (int i = 0; i < outputs; ++i) {
    for (int t = 0; t < taps * kernel; ++t)
      total[i][t / kernel][t % kernel] = load(sums + (i * all_taps + t) * kLanes);
  }
  Index p = 0;
  do {
    const float* patch = x + p * pool * some.x_row;
    Index at = p * some.dy_row;
    Index columns = some.columns;
    do {
      Floats gradient[outputs][kPlaces];
#pragma GCC unroll 4
      for (int i = 0; i < outputs; ++i) {
        const Index here = at + i * some.plane;
        const Floats all = window_gradient(some.dy + here, some.y + here, some.relu);
        const Ints winner = load_bytes(some.argmax + here);
#pragma GCC unroll 9
        for (int place = 0; place < kPlaces; ++place)
          gradient[i][place] = select(winner == place, all, Floats{});
      }
#pragma GCC unroll 8
      for (int row = 0; row < pool + taps - 1; ++row) {
#pragma GCC unroll 8
        for (int column = 0; column < pool + kernel - 1; ++column) {
          const Floats value = load(patch + row * some.x_row + column * kLanes);
#pragma GCC unroll 9
          for (int place = 0; place < kPlaces; ++place) {
            const int r = row - place / pool;
            const int s = column - place % pool;
            if (r < 0 || r >= taps || s < 0 || s >= kernel) continue;
#pragma GCC unroll 4
            for (int i = 0; i < outputs; ++i) total[i][r][s] += gradient[i][place] * value;
          }
        }
      }
      patch += pool * kLanes;
      at += kGroup;
    } while (--columns > 0);
  } while (++p < some.rows);
  for (int i = 0; i < outputs; ++i) {
    for (int t = 0; t < taps * kernel; ++t)
      store(sums + (i * all_taps + t) * kLanes, total[i][t / kernel][t % kernel]);
  }
}

/// Outputs and rows of the kernel whose sums fit the registers beside the gradients of a window of
/// 2 x 2.
template <int kernel>
struct GradientTile {
  static constexpr int kOutputs = kLanes == 16 && kernel == 3 ? 2 : 1;
  static constexpr int kTaps = kLanes == 16 ? kernel : kernel == 3 ? 3 : 2;
};

template <int kernel, int pool>
void add_all_windows(const WindowGeometry& conv, const Windows& all, const BorderedImage& in,
                     const float* x, float* sums) {
  using Tile = GradientTile<kernel>;
  constexpr int kRest = kernel % Tile::kTaps;
  const Index taps = conv.c * kernel * kernel;
  for (Index k = 0, outputs = 0; k < conv.k; k += outputs) {
    outputs = smaller(conv.k - k, Tile::kOutputs);
    Windows some = all;
    some.dy += k * all.plane;
    some.y += k * all.plane;
    some.argmax += k * all.plane;
    for (Index c = 0; c < conv.c; ++c) {
      float* to = sums + (k * taps + c * kernel * kernel) * kLanes;
      for (int r = 0; r < kernel; r += Tile::kTaps, to += Tile::kTaps * kernel * kLanes) {
        const float* from = x + c * in.channel + r * in.row;
        if (r + Tile::kTaps > kernel) {
          add_windows<kernel, pool, kRest == 0 ? 1 : kRest, 1>(some, from, to, taps);
        } else if (outputs == Tile::kOutputs) {
          add_windows<kernel, pool, Tile::kTaps, Tile::kOutputs>(some, from, to, taps);
        } else {
          add_windows<kernel, pool, Tile::kTaps, 1>(some, from, to, taps);
        }
      }
    }
  }
}

}  // namespace

std::size_t conv_pool_few_bytes(const WindowGeometry& conv) {
  return sizeof(float) *
         static_cast<std::size_t>(weight_floats(conv) + kParts * bordered(conv).floats());
}

void conv_pool_forward_few(const WindowGeometry& conv, const WindowGeometry& pool, bool relu,
                           const float* x, const float* w, const float* b, float* y,
                           std::uint8_t* argmax, void* workspace) {
  const Space space = split(conv, workspace);
  const BorderedImage in = bordered(conv);
  const Index taps = conv.c * conv.kernel_h * conv.kernel_w;
  float* packed = space.weights;
  for (Index k = 0, outputs = 0; k < conv.k; k += outputs) {
    outputs = outputs_at(conv.k, k);
    for (Index t = 0; t < taps; ++t) {
      for (Index i = 0; i < outputs; ++i) *packed++ = w[(k + i) * taps + t];
    }
  }
  const Index plane = pool.p * pool.q * kGroup;
  const auto run = conv.kernel_h == 3 ? rows_of_outputs<3> : rows_of_outputs<5>;
  for (Index group = 0; group < conv.groups; ++group) {
    add_border(conv, in, x + group * conv.c * conv.h * conv.w * kGroup, space.image);
    for (Index p = 0; p < pool.p; ++p) {
      for (int part = 0; part < kParts; ++part) {
        const float* from = space.image + part * in.floats() + 2 * p * in.row;
        for (Index k = 0, outputs = 0; k < conv.k; k += outputs) {
          outputs = outputs_at(conv.k, k);
          const Index at = (group * conv.k + k) * plane + p * pool.q * kGroup + part * kLanes;
          const WindowRow some{.channels = conv.c,
                               .windows = pool.q,
                               .channel = in.channel,
                               .row = in.row,
                               .weights = space.weights + k * taps,
                               .bias = b ? b + k : nullptr,
                               .relu = relu,
                               .plane = plane};
          run(outputs, some, from, y + at, argmax ? argmax + at : nullptr);
        }
      }
    }
  }
}

void conv_pool_backward_few(const ConvPoolGradients& all, void* workspace) {
  const WindowGeometry& conv = all.conv;
  const WindowGeometry& pool = all.pool;
  const Space space = split(conv, workspace);
  const BorderedImage in = bordered(conv);
  const Index weights = conv.k * conv.c * conv.kernel_h * conv.kernel_w;
  const Index plane = pool.p * pool.q * kGroup;
  const auto by_kernel = [&](auto small, auto large) { return conv.kernel_h == 3 ? small : large; };
  const auto add = pool.kernel_h == 2 ? by_kernel(add_all_windows<3, 2>, add_all_windows<5, 2>)
                                      : by_kernel(add_all_windows<3, 3>, add_all_windows<5, 3>);
  zero(space.weights, weights * kLanes);
  for (Index group = 0; group < conv.groups; ++group) {
    add_border(conv, in, all.x + group * conv.c * conv.h * conv.w * kGroup, space.image);
    const Index first = group * conv.k * plane;
    for (int part = 0; part < kParts; ++part) {
      const Index at = first + part * kLanes;
      add(conv,
          {.relu = all.relu,
           .rows = pool.p,
           .columns = pool.q,
           .x_row = in.row,
           .dy_row = pool.q * kGroup,
           .dy = all.dy + at,
           .y = all.y + at,
           .argmax = all.argmax + at,
           .plane = plane},
          in, space.image + part * in.floats(), space.weights);
    }
    for (Index k = 0; all.db && k < conv.k; ++k) {
      Floats bias{};
      for (Index i = first + k * plane; i < first + (k + 1) * plane; i += kLanes) {
        bias += window_gradient(all.dy + i, all.y + i, all.relu);
      }
      const float sum = sum_lanes(bias);
      all.db[k] = all.accumulate || group > 0 ? all.db[k] + sum : sum;
    }
  }
  sum_vectors(weights, space.weights, all.dw, all.accumulate);
}

}  // namespace lockstep::cpu::LOCKSTEP_CPU_SET
