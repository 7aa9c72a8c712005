// Convolution [+ ReLU] + max-pooling on groups of 16 samples, without a map between them.
//
// Forward, unless Winograd's way pays (conv_pool_winograd.cpp), the rows of the convolution that
// one row of windows needs are computed for a tile of outputs, pooled while they are in the
// first-level cache, and forgotten:
//
//   x, a vector of samples          rows of a tile        y, argmax
//   +----------------------+        +-----------+         +------+
//   |======================| -sum-> |-----------| -pool-> |------|
//   |======================|        |-----------|         |      |
//
// Backward, only a window's winning place has a gradient. Two ways to use that:
//
// - conv_pool_sparse.cpp takes samples one by one and visits winning places only: a quarter of the
//   work for windows of 2 x 2. Lanes are taps and channels, so it wants some channels.
// - Here, for few channels and where nobody needs dx: lanes stay samples. The gradients of a row of
//   windows are spread over the rows of the convolution under it, zeros between them, and dw's
//   dense sums run over those.
#include "lockstep/kernels/cpu/conv_pool.h"

#include "lockstep/kernels/cpu/conv_parameters.h"
#include "lockstep/kernels/cpu/conv_tile.h"
#include "lockstep/kernels/cpu/pool_row.h"
#include "lockstep/kernels/cpu/set.h"

namespace lockstep::cpu::LOCKSTEP_CPU_SET {
namespace {

/// Rows of the convolution under the largest window, all outputs, one vector of samples.
Index row_floats(const WindowGeometry& conv, const WindowGeometry& pool) {
  return conv.k * pool.kernel_h * conv.q * kLanes;
}

void forward_direct(const WindowGeometry& conv, const WindowGeometry& pool, bool relu,
                    const float* x, const float* w, const float* b, float* y, std::uint8_t* argmax,
                    void* workspace) {
  auto* rows = static_cast<float*>(workspace);
  const Workspace space = split_workspace(conv, rows + row_floats(conv, pool));
  const Border border = border_of_x(conv);
  const Image in = rows_of_channels(conv.c, conv.h, conv.w, border);
  TapSum sum = forward_sum(conv, in, w, b, pool.kernel_h, space);
  sum.out_column = kLanes;
  sum.out_row = conv.q * kLanes;
  sum.out_channel = pool.kernel_h * sum.out_row;
  const Index plane = pool.p * pool.q * kGroup;
  // All tiles share one place, unless their sums have to wait for more taps.
  const bool at_once = sum.taps_at_once >= sum.taps;
  for (Index group = 0; group < conv.groups; ++group) {
    add_border_to_parts(in, border, x + group * conv.c * conv.h * conv.w * kGroup, space.image);
    for (Index p = 0; p < pool.p; ++p) {
      const Span span{0, pool.kernel_h, p * pool.stride_h};
      for (int part = 0; part < kParts; ++part) {
        const float* from = space.image + part * in.h * in.row + span.origin * sum.in_row;
        const Index at = (group * conv.k * pool.p + p) * pool.q * kGroup + part * kLanes;
        Index first = 0;
        do {
          const bool complete = first + sum.taps_at_once >= sum.taps;
          for (Index k = 0; k < conv.k;) {
            float* tile = rows + (at_once ? 0 : k * sum.out_channel);
            sum_tile(sum, k, first, pool.kernel_h, from, tile);
            const Index end = k + tile_outputs(conv.k, k);
            for (; k < end; ++k, tile += sum.out_channel) {
              if (!complete) continue;
              pool_row(pool, span, tile, sum.out_row, kLanes, relu, y + at + k * plane,
                       argmax ? argmax + at + k * plane : nullptr);
            }
          }
          first += sum.taps_at_once;
        } while (first < sum.taps);
      }
    }
  }
}

/// The gradients of a row of windows of `size` x `size`, spread over the rows of the convolution
/// under it.
template <int size>
void spread_row(const WindowGeometry& pool, bool relu, const float* dy, const float* y,
                const std::uint8_t* argmax, float* rows) {
  const Index row = pool.w * kLanes;
  for (Index q = 0; q < pool.q; ++q) {
    const Floats gradient = window_gradient(dy + q * kGroup, y + q * kGroup, relu);
    const Ints winner = load_bytes(argmax + q * kGroup);
    float* to = rows + q * size * kLanes;
#pragma GCC unroll 9
    for (int place = 0; place < size * size; ++place) {
      store(to + place / size * row + place % size * kLanes,
            select(winner == place, gradient, Floats{}));
    }
  }
  for (Index i = 0; i < size; ++i) {
    for (Index j = pool.q * size; j < pool.w; ++j) store(rows + i * row + j * kLanes, Floats{});
  }
}

void backward_dense(const ConvPoolGradients& all, void* workspace) {
  const WindowGeometry& conv = all.conv;
  const WindowGeometry& pool = all.pool;
  auto* rows = static_cast<float*>(workspace);
  const Workspace space = split_workspace(conv, rows + row_floats(conv, pool));
  const Border border = border_of_x(conv);
  const Image in = rows_of_channels(conv.c, conv.h, conv.w, border);
  const Index taps = x_tap_offsets(conv, in, space.offsets);
  const Index plane = pool.p * pool.q * kGroup;
  const Positions some{.parts = 1,
                       .rows = pool.kernel_h,
                       .columns = conv.q,
                       .x_row = conv.stride_h * in.row,
                       .x_column = conv.stride_w * kLanes,
                       .dy_channel = pool.kernel_h * conv.q * kLanes,
                       .dy_row = conv.q * kLanes,
                       .dy_column = kLanes};
  for (Index group = 0; group < conv.groups; ++group) {
    add_border_to_parts(in, border, all.x + group * conv.c * conv.h * conv.w * kGroup, space.image);
    for (int part = 0; part < kParts; ++part) {
      for (Index p = 0; p < pool.p; ++p) {
        for (Index k = 0; k < conv.k; ++k) {
          const Index at = (group * conv.k + k) * plane + p * pool.q * kGroup + part * kLanes;
          const auto spread = pool.kernel_h == 2 ? spread_row<2> : spread_row<3>;
          spread(pool, all.relu, all.dy + at, all.y + at, all.argmax + at,
                 rows + k * some.dy_channel);
        }
        add_parameter_sums(
            some, conv.k, space.image + part * in.h * in.row + p * pool.kernel_h * some.x_row,
            space.offsets, rows, taps, space.weights, group > 0 || part > 0 || p > 0);
      }
    }
    for (Index k = 0; all.db && k < conv.k; ++k) {
      const Index at = (group * conv.k + k) * plane;
      Floats bias{};
      for (Index i = at; i < at + plane; i += kLanes) {
        bias += window_gradient(all.dy + i, all.y + i, all.relu);
      }
      const float sum = sum_lanes(bias);
      all.db[k] = all.accumulate || group > 0 ? all.db[k] + sum : sum;
    }
  }
  sum_vectors(conv.k * taps, space.weights, all.dw, all.accumulate);
}

/// Winograd's transforms cost a patch about as much as six channels' multiplications do less.
bool winograd_pays(const WindowGeometry& conv, const WindowGeometry& pool) {
  constexpr Index kChannels = 6;
  return conv.kernel_h == 3 && conv.kernel_w == 3 && conv.stride_h == 1 && conv.stride_w == 1 &&
         is_2x2(pool) && conv.c >= kChannels && conv.k >= kChannels;
}

void forward(const WindowGeometry& conv, const WindowGeometry& pool, bool relu, const float* x,
             const float* w, const float* b, float* y, std::uint8_t* argmax, void* workspace) {
  if (winograd_pays(conv, pool)) {
    conv_pool_forward_winograd(conv, pool, relu, x, w, b, y, argmax, workspace);
  } else {
    forward_direct(conv, pool, relu, x, w, b, y, argmax, workspace);
  }
}

void backward(const WindowGeometry& conv, const WindowGeometry& pool, bool relu, const float* x,
              const float* w, const float* y, const std::uint8_t* argmax, const float* dy,
              float* dw, float* db, bool accumulate, float* dx, void* workspace) {
  constexpr Index kFewChannels = 3;
  const ConvPoolGradients all{conv, pool, relu, x, w, y, argmax, dy, dw, db, accumulate, dx};
  if (dx == nullptr && conv.c <= kFewChannels) {
    backward_dense(all, workspace);
  } else {
    conv_pool_backward_sparse(all, workspace);
  }
}

std::size_t workspace_bytes(const WindowGeometry& conv, const WindowGeometry& pool) {
  const std::size_t direct =
      sizeof(float) * static_cast<std::size_t>(row_floats(conv, pool)) + conv_workspace_bytes(conv);
  const std::size_t winograd = conv_pool_winograd_bytes(conv);
  const std::size_t sparse = conv_pool_sparse_bytes(conv, pool);
  const std::size_t forwards = direct > winograd ? direct : winograd;
  return forwards > sparse ? forwards : sparse;
}

}  // namespace

const ConvPoolKernels conv_pool_kernels = {
    .forward = forward,
    .backward = backward,
    .workspace_bytes = workspace_bytes,
};

}  // namespace lockstep::cpu::LOCKSTEP_CPU_SET
