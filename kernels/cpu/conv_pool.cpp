// Convolution [+ ReLU] + max-pooling on groups of 16 samples, without a map between them.
//
// Which way is taken is a question of shapes alone. Forward:
//
// - 3 x 3 kernels before windows of 2 x 2, some channels: Winograd's (conv_pool_winograd.cpp);
// - few channels, windows of 2 x 2: a window at a time in registers (conv_pool_few.cpp);
// - else here: the rows of the convolution that one row of windows needs are computed for a tile of
//   outputs, pooled while they are in the first-level cache, and forgotten:
//
//   x of a group                    rows of a tile        y, argmax
//   +----------------------+        +-----------+         +------+
//   |======================| -sum-> |-----------| -pool-> |------|
//   |======================|        |-----------|         |      |
//
// Backward, only a window's winning place has a gradient:
//
// - conv_pool_sparse.cpp takes samples one by one and visits winning places only: a quarter of the
//   work for windows of 2 x 2. Lanes are taps and channels, so it wants some channels.
// - conv_pool_few.cpp, where channels are few and nobody needs dx: lanes stay samples.
#include "lockstep/kernels/cpu/conv_pool.h"

#include "lockstep/kernels/cpu/conv_sum.h"
#include "lockstep/kernels/cpu/conv_tile.h"
#include "lockstep/kernels/cpu/pool_row.h"
#include "lockstep/kernels/cpu/set.h"

namespace lockstep::cpu::LOCKSTEP_CPU_SET {
namespace {

/// Rows of the convolution under the largest window, all outputs, one group.
Index row_floats(const WindowGeometry& conv, const WindowGeometry& pool) {
  return conv.k * pool.kernel_h * conv.q * kGroup;
}

void forward_direct(const WindowGeometry& conv, const WindowGeometry& pool, bool relu,
                    const float* x, const float* w, const float* b, float* y, std::uint8_t* argmax,
                    void* workspace) {
  auto* rows = static_cast<float*>(workspace);
  TapSum sum = forward_sum(conv, w, b, pool.kernel_h, rows + row_floats(conv, pool));
  sum.out_channel = pool.kernel_h * sum.out_row;
  const Index plane = pool.p * pool.q * kGroup;
  // All tiles share one place, unless their sums have to wait for more channels.
  const bool at_once = sum.channels_at_once >= sum.channels;
  for (Index group = 0; group < conv.groups; ++group) {
    const float* from = x + group * conv.c * conv.h * conv.w * kGroup;
    for (Index p = 0; p < pool.p; ++p) {
      const Span span{0, pool.kernel_h, p * pool.stride_h};
      const Index at = (group * conv.k * pool.p + p) * pool.q * kGroup;
      for (Index channel = 0; channel < conv.c; channel += sum.channels_at_once) {
        const bool complete = channel + sum.channels_at_once >= conv.c;
        for (Index k = 0; k < conv.k;) {
          float* tile = rows + (at_once ? 0 : k * sum.out_channel);
          sum_tile(sum, k, channel, span.origin, pool.kernel_h, from, tile);
          const Index end = k + tile_outputs(conv.k, k);
          for (; k < end; ++k, tile += sum.out_channel) {
            for (int part = 0; complete && part < kGroup; part += kLanes) {
              const Index to = at + k * plane + part;
              pool_row(pool, span, tile + part, sum.out_row, kGroup, relu, y + to,
                       argmax ? argmax + to : nullptr);
            }
          }
        }
      }
    }
  }
}

/// Up to as many the loops over a window's few multiply-adds cost less than what they save.
constexpr Index kFewChannels = 3;

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
  } else if (conv.c <= kFewChannels && is_2x2(pool)) {
    conv_pool_forward_few(conv, pool, relu, x, w, b, y, argmax, workspace);
  } else {
    forward_direct(conv, pool, relu, x, w, b, y, argmax, workspace);
  }
}

void backward(const WindowGeometry& conv, const WindowGeometry& pool, bool relu, const float* x,
              const float* w, const float* y, const std::uint8_t* argmax, const float* dy,
              float* dw, float* db, bool accumulate, float* dx, void* workspace) {
  const ConvPoolGradients all{conv, pool, relu, x, w, y, argmax, dy, dw, db, accumulate, dx};
  if (dx == nullptr && conv.c <= kFewChannels) {
    conv_pool_backward_few(all, workspace);
  } else {
    conv_pool_backward_sparse(all, workspace);
  }
}

std::size_t workspace_bytes(const WindowGeometry& conv, const WindowGeometry& pool) {
  const std::size_t direct =
      sizeof(float) * static_cast<std::size_t>(row_floats(conv, pool)) + tap_sum_bytes(conv);
  const std::size_t winograd = conv_pool_winograd_bytes(conv);
  const std::size_t sparse = conv_pool_sparse_bytes(conv, pool);
  const std::size_t few = conv_pool_few_bytes(conv);
  std::size_t most = direct > winograd ? direct : winograd;
  most = most > sparse ? most : sparse;
  return most > few ? most : few;
}

}  // namespace

const ConvPoolKernels conv_pool_kernels = {
    .forward = forward,
    .backward = backward,
    .workspace_bytes = workspace_bytes,
};

}  // namespace lockstep::cpu::LOCKSTEP_CPU_SET
