// Convolution + ReLU + max-pooling in one kernel, and its gradients in another.
//
// Forward and dx are correlations of planes in shared memory: a thread computes a small tile of
// outputs for kGroup = 4 channels in registers. For forward the tile is a pooling window; for dx
// the planes hold the gradient of the convolution's output, which is dy at each window's winner and
// 0 elsewhere, and the kernel is turned around.
//
// dw needs the winners alone: a thread adds up, for one pair of channels and a part of the windows,
// gradient * (the piece of the image under the kernel). Blocks write their sums to the workspace,
// and the last of each group of blocks adds them up in order.
#include <algorithm>

#include "lockstep/core/cuda/runtime.h"
#include "lockstep/kernels/cuda/handles.h"
#include "lockstep/kernels/cuda/kernels.h"
#include "lockstep/kernels/cuda/last_block.h"
#include "lockstep/kernels/fused_geometry.h"

namespace lockstep::cuda {
namespace {

using fused::ConvPool;
using fused::groups_of;
using fused::kConvThreads;
using fused::kDataTile;
using fused::kGroup;
using fused::Tile;

extern __shared__ float4 shared_memory[];

/// Calls visit(plane, row, column) for the elements of `planes` planes; a warp has a row at a time.
template <class Visit>
__device__ void for_tile(const Tile& tile, int planes, Visit visit) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  for (int i = warp; i < planes * tile.rows; i += kConvThreads / 32) {
    const int plane = i / tile.rows;
    const int row = i % tile.rows;
    for (int column = lane; column < tile.pitch; column += 32) visit(plane, row, column);
  }
}

/// Planes of an image with zeros around it; `x` is the first of them.
__device__ void load_image(const ConvPool& e, const Tile& tile, int planes, const float* x,
                           float* to) {
  for_tile(tile, planes, [&](int plane, int row, int column) {
    const int h = row - tile.top;
    const int w = column - tile.left;
    const bool inside = h >= 0 && h < e.h && w >= 0 && w < e.w;
    to[plane * tile.plane + row * tile.pitch + column] =
        inside ? x[(plane * e.h + h) * e.w + w] : 0.0F;
  });
}

/// What forward left, and the gradient of it: (n,k,p,q).
struct Pooled {
  const float* y;
  const std::uint8_t* argmax;
  const float* dy;
  bool relu;

  /// The gradient at the winner of window `at`.
  __device__ float gradient(std::int64_t at) const { return relu && y[at] <= 0 ? 0.0F : dy[at]; }
};

/// Planes of the gradient of the convolution's output; `first` is the first window of them.
__device__ void load_gradient(const ConvPool& e, const Tile& tile, int planes, const Pooled& pooled,
                              std::int64_t first, float* to) {
  for_tile(tile, planes, [&](int plane, int row, int column) {
    const int h = row - tile.top;
    const int w = column - tile.left;
    float gradient = 0;
    if (h >= 0 && h < e.p * e.pool && w >= 0 && w < e.q * e.pool) {
      const std::int64_t window = first + (plane * e.p + h / e.pool) * e.q + w / e.pool;
      const int place = h % e.pool * e.pool + w % e.pool;
      if (pooled.argmax[window] == place) gradient = pooled.gradient(window);
    }
    to[plane * tile.plane + row * tile.pitch + column] = gradient;
  });
}

/// sums[i][j] += sum over r, s of plane[i + r][j + s] * weights[r][s], for four channels.
template <int kKernel, int kTile>
__device__ void correlate(const float* plane, int pitch, const float4* weights,
                          float4 (&sums)[kTile][kTile]) {
  constexpr int kSide = kTile + kKernel - 1;
  float piece[kSide][kSide];
#pragma unroll
  for (int i = 0; i < kSide; ++i) {
    if constexpr (kTile % 2 == 0) {
      // Tiles begin at even columns of even rows' length.
      static_assert(kSide % 2 == 0);
#pragma unroll
      for (int j = 0; j < kSide; j += 2) {
        const float2 two = *reinterpret_cast<const float2*>(plane + i * pitch + j);
        piece[i][j] = two.x;
        piece[i][j + 1] = two.y;
      }
    } else {
#pragma unroll
      for (int j = 0; j < kSide; ++j) piece[i][j] = plane[i * pitch + j];
    }
  }
#pragma unroll
  for (int r = 0; r < kKernel; ++r) {
#pragma unroll
    for (int s = 0; s < kKernel; ++s) {
      const float4 weight = weights[r * kKernel + s];
#pragma unroll
      for (int i = 0; i < kTile; ++i) {
#pragma unroll
        for (int j = 0; j < kTile; ++j) {
          const float value = piece[i + r][j + s];
          float4& sum = sums[i][j];
          sum.x = fmaf(value, weight.x, sum.x);
          sum.y = fmaf(value, weight.y, sum.y);
          sum.z = fmaf(value, weight.z, sum.z);
          sum.w = fmaf(value, weight.w, sum.w);
        }
      }
    }
  }
}

__device__ float channel_of(const float4& value, int channel) {
  return channel == 0 ? value.x : channel == 1 ? value.y : channel == 2 ? value.z : value.w;
}

/// The first largest of a window, the first NaN before all; and its place.
template <int kPool>
__device__ float pool_window(const float4 (&window)[kPool][kPool], int channel, bool relu,
                             int& place) {
  float best = 0;
#pragma unroll
  for (int i = 0; i < kPool; ++i) {
#pragma unroll
    for (int j = 0; j < kPool; ++j) {
      float value = channel_of(window[i][j], channel);
      if (relu && value <= 0) value = 0;
      if ((i == 0 && j == 0) || (!(value <= best) && best == best)) {
        best = value;
        place = i * kPool + j;
      }
    }
  }
  return best;
}

/// Block (n, a group of output channels and a run of windows); a thread has one window.
template <int kKernel, int kPool>
__global__ void __launch_bounds__(kConvThreads)
    forward_kernel(ConvPool e, bool relu, const float* x, const float* w, const float* b, float* y,
                   std::uint8_t* argmax) {
  constexpr int kArea = kKernel * kKernel;
  const Tile tile = e.image();
  const int planes = e.planes_at_once(tile, e.c);
  const int n = static_cast<int>(blockIdx.x);
  const int k0 = static_cast<int>(blockIdx.y) % groups_of(e.k) * kGroup;
  const int chunk = static_cast<int>(blockIdx.y) / groups_of(e.k);
  const int window = chunk * kConvThreads + static_cast<int>(threadIdx.x);
  const bool active = window < e.p * e.q;
  float4* weights = shared_memory;
  auto* image = reinterpret_cast<float*>(weights + planes * kArea);

  const auto bias = [&](int channel) {
    return b != nullptr && k0 + channel < e.k ? b[k0 + channel] : 0.0F;
  };
  float4 sums[kPool][kPool];
#pragma unroll
  for (int i = 0; i < kPool; ++i) {
#pragma unroll
    for (int j = 0; j < kPool; ++j) sums[i][j] = {bias(0), bias(1), bias(2), bias(3)};
  }

  for (int c0 = 0; c0 < e.c; c0 += planes) {
    const int here = min(planes, e.c - c0);
    __syncthreads();
    load_image(e, tile, here, x + (std::int64_t{n} * e.c + c0) * e.h * e.w, image);
    for (int i = static_cast<int>(threadIdx.x); i < here * kArea; i += kConvThreads) {
      const auto weight = [&](int channel) {
        return k0 + channel < e.k ? w[((k0 + channel) * e.c + c0) * kArea + i] : 0.0F;
      };
      weights[i] = {weight(0), weight(1), weight(2), weight(3)};
    }
    __syncthreads();
    if (!active) continue;
    const float* corner = image + window / e.q * kPool * tile.pitch + window % e.q * kPool;
    for (int c = 0; c < here; ++c) {
      correlate<kKernel, kPool>(corner + c * tile.plane, tile.pitch, weights + c * kArea, sums);
    }
  }
  if (!active) return;
#pragma unroll
  for (int channel = 0; channel < kGroup; ++channel) {
    if (k0 + channel >= e.k) return;
    int place = 0;
    const float value = pool_window<kPool>(sums, channel, relu, place);
    const std::int64_t at = (std::int64_t{n} * e.k + k0 + channel) * e.p * e.q + window;
    y[at] = value;
    if (argmax != nullptr) argmax[at] = static_cast<std::uint8_t>(place);
  }
}

/// What the blocks of the backward kernel do: the first `parameter_blocks` dw and db, the others
/// dx.
struct Backward {
  ConvPool e;
  Pooled pooled;
  const float* x;
  const float* w;
  float* dw;
  float* db;
  float* dx;
  bool accumulate;
  int shards;
  std::int64_t grads_stride;
  float* partial;     ///< sums of one block after another
  unsigned* tickets;  ///< one for each tile of each shard
  unsigned parameter_blocks;
};

/// One part of a shard's samples, and the weights between a group of output channels and a group of
/// input channels: a tile of dw.
template <int kKernel>
__device__ void parameter_block(const Backward& task) {
  constexpr int kArea = kKernel * kKernel;
  constexpr int kSums = kArea + 1;  // the last one is the bias
  const ConvPool& e = task.e;
  const Tile tile = e.staggered_image();
  const int windows = e.p * e.q;
  const fused::Cut cut = fused::cut_conv_batch(e.n / task.shards);
  const int tiles = groups_of(e.k) * groups_of(e.c);
  const int t = static_cast<int>(threadIdx.x);

  const int part = static_cast<int>(blockIdx.x) % cut.parts;
  const int shard_tile = static_cast<int>(blockIdx.x) / cut.parts;
  const int shard = shard_tile / tiles;
  const int k0 = shard_tile % tiles % groups_of(e.k) * kGroup;
  const int c0 = shard_tile % tiles / groups_of(e.k) * kGroup;
  const int k_here = min(kGroup, e.k - k0);
  const int c_here = min(kGroup, e.c - c0);

  // Threads: the pairs of channels, and for each as many runs of windows as there is room for.
  const int pairs = k_here * c_here;
  const int runs = kConvThreads / pairs;
  const int pair = t % pairs;
  const int run = t / pairs;
  const int k = pair / c_here;
  const int c = pair % c_here;

  auto* image = reinterpret_cast<float*>(shared_memory);
  float* gradients = image + c_here * tile.plane;
  int* corners = reinterpret_cast<int*>(gradients + k_here * windows);
  float sums[kSums] = {};
  const int first = shard * (e.n / task.shards) + part * cut.samples;
  const int end = min(first + cut.samples, (shard + 1) * (e.n / task.shards));
  for (int n = first; n < end; ++n) {
    __syncthreads();
    load_image(e, tile, c_here, task.x + (std::int64_t{n} * e.c + c0) * e.h * e.w, image);
    for (int i = t; i < k_here * windows; i += kConvThreads) {
      const std::int64_t at = (std::int64_t{n} * e.k + k0) * windows + i;
      const int window = i % windows;
      const int place = task.pooled.argmax[at];
      gradients[i] = task.pooled.gradient(at);
      corners[i] = (window / e.q * e.pool + place / e.pool) * tile.pitch + window % e.q * e.pool +
                   place % e.pool;
    }
    __syncthreads();
    if (run >= runs) continue;
    for (int window = run; window < windows; window += runs) {
      const float gradient = gradients[k * windows + window];
      const float* piece = image + c * tile.plane + corners[k * windows + window];
#pragma unroll
      for (int i = 0; i < kArea; ++i) {
        sums[i] = fmaf(gradient, piece[i / kKernel * tile.pitch + i % kKernel], sums[i]);
      }
      sums[kArea] += gradient;
    }
  }

  // The block's sums over the runs, then the sums over the blocks, each in order.
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kSums; ++i) image[i * kConvThreads + t] = sums[i];
  __syncthreads();
  constexpr int kStride = kGroup * kGroup * kSums;
  float* partial = task.partial + std::int64_t{shard_tile} * cut.parts * kStride;
  for (int i = t; i < pairs * kSums; i += kConvThreads) {
    const float* of_runs = image + i / pairs * kConvThreads + i % pairs;
    float sum = 0;
    for (int r = 0; r < runs; ++r) sum += of_runs[r * pairs];
    partial[part * kStride + i] = sum;
  }
  if (!is_last_block(task.tickets + shard_tile, static_cast<unsigned>(cut.parts))) return;
  for (int i = t; i < pairs * kSums; i += kConvThreads) {
    float sum = 0;
#pragma unroll 8
    for (int p = 0; p < cut.parts; ++p) sum += partial[p * kStride + i];
    const int element = i / pairs;
    const int out_k = k0 + i % pairs / c_here;
    const int out_c = c0 + i % pairs % c_here;
    float* to = nullptr;
    if (element < kArea) {
      to = task.dw + shard * task.grads_stride + (out_k * e.c + out_c) * kArea + element;
    } else if (out_c == 0 && task.db != nullptr) {
      to = task.db + shard * task.grads_stride + out_k;
    }
    if (to != nullptr) *to = task.accumulate ? *to + sum : sum;
  }
}

/// One sample, a group of input channels and a run of tiles of dx; a thread has one tile.
template <int kKernel>
__device__ void data_block(const Backward& task) {
  constexpr int kArea = kKernel * kKernel;
  const ConvPool& e = task.e;
  const Tile tile = e.gradient();
  const int planes = e.planes_at_once(tile, e.k);
  const int columns = ConvPool::data_tiles(e.w);
  const int tiles = ConvPool::data_tiles(e.h) * columns;
  const int chunks = (tiles + kConvThreads - 1) / kConvThreads;
  const auto block = static_cast<int>(blockIdx.x - task.parameter_blocks);
  const int chunk = block % chunks;
  const int c0 = block / chunks % groups_of(e.c) * kGroup;
  const int n = block / chunks / groups_of(e.c);
  const int at = chunk * kConvThreads + static_cast<int>(threadIdx.x);
  const int h0 = at / columns * kDataTile;
  const int w0 = at % columns * kDataTile;
  float4* weights = shared_memory;
  auto* gradient = reinterpret_cast<float*>(weights + planes * kArea);

  float4 sums[kDataTile][kDataTile] = {};
  for (int k0 = 0; k0 < e.k; k0 += planes) {
    const int here = min(planes, e.k - k0);
    __syncthreads();
    load_gradient(e, tile, here, task.pooled, (std::int64_t{n} * e.k + k0) * e.p * e.q, gradient);
    for (int i = static_cast<int>(threadIdx.x); i < here * kArea; i += kConvThreads) {
      const int turned = kArea - 1 - i % kArea;
      const auto weight = [&](int channel) {
        return c0 + channel < e.c ? task.w[((k0 + i / kArea) * e.c + c0 + channel) * kArea + turned]
                                  : 0.0F;
      };
      weights[i] = {weight(0), weight(1), weight(2), weight(3)};
    }
    __syncthreads();
    if (at >= tiles) continue;
    const float* corner = gradient + h0 * tile.pitch + w0;
    for (int k = 0; k < here; ++k) {
      correlate<kKernel, kDataTile>(corner + k * tile.plane, tile.pitch, weights + k * kArea, sums);
    }
  }
  if (at >= tiles) return;
#pragma unroll
  for (int channel = 0; channel < kGroup; ++channel) {
    if (c0 + channel >= e.c) return;
    float* dx = task.dx + (std::int64_t{n} * e.c + c0 + channel) * e.h * e.w;
#pragma unroll
    for (int i = 0; i < kDataTile; ++i) {
#pragma unroll
      for (int j = 0; j < kDataTile; ++j) {
        if (h0 + i < e.h && w0 + j < e.w) {
          dx[(h0 + i) * e.w + w0 + j] = channel_of(sums[i][j], channel);
        }
      }
    }
  }
}

template <int kKernel>
__global__ void __launch_bounds__(kConvThreads) backward_kernel(Backward task) {
  if (blockIdx.x < task.parameter_blocks) {
    parameter_block<kKernel>(task);
  } else {
    data_block<kKernel>(task);
  }
}

std::size_t correlation_bytes(const ConvPool& e, const Tile& tile, int channels) {
  return static_cast<std::size_t>(e.planes_at_once(tile, channels)) *
         static_cast<std::size_t>(e.plane_bytes(tile));
}

unsigned blocks_over(int items) {
  return static_cast<unsigned>((items + kConvThreads - 1) / kConvThreads);
}

}  // namespace

void conv_pool_forward(Context& context, const Window& conv, const Window& pool, bool relu,
                       ConstFloatView x, ConstFloatView w, ConstFloatView b, FloatView y,
                       View<std::uint8_t> argmax) {
  const ConvPool e = fused::conv_pool_of(conv, pool, x.shape, w.shape);
  const dim3 grid(static_cast<unsigned>(e.n),
                  static_cast<unsigned>(groups_of(e.k)) * blocks_over(e.p * e.q));
  const auto kernel = e.kernel == 3 ? (e.pool == 2 ? forward_kernel<3, 2> : forward_kernel<3, 3>)
                                    : (e.pool == 2 ? forward_kernel<5, 2> : forward_kernel<5, 3>);
  kernel<<<grid, kConvThreads, correlation_bytes(e, e.image(), e.c), stream_of(context)>>>(
      e, relu, x.data, w.data, b.data, y.data, argmax.data);
  check_launch("conv_pool_forward");
}

void conv_pool_backward(Context& context, const Window& conv, const Window& pool, bool relu,
                        ConstFloatView x, ConstFloatView w, ConstFloatView y,
                        View<const std::uint8_t> argmax, ConstFloatView dy, FloatView dw,
                        FloatView db, bool accumulate, FloatView dx, int shards,
                        std::int64_t grads_stride) {
  const ConvPool e = fused::conv_pool_of(conv, pool, x.shape, w.shape);
  const int parts = fused::cut_conv_batch(e.n / shards).parts;
  const auto parameter_blocks =
      static_cast<unsigned>(shards * groups_of(e.k) * groups_of(e.c) * parts);
  const Backward task{.e = e,
                      .pooled = {y.data, argmax.data, dy.data, relu},
                      .x = x.data,
                      .w = w.data,
                      .dw = dw.data,
                      .db = db.data,
                      .dx = dx.data,
                      .accumulate = accumulate,
                      .shards = shards,
                      .grads_stride = grads_stride,
                      .partial = reinterpret_cast<float*>(context.workspace()),
                      .tickets = handles_of(context).tickets(),
                      .parameter_blocks = parameter_blocks};
  unsigned blocks = parameter_blocks;
  auto bytes = static_cast<std::size_t>(e.parameter_bytes());
  if (dx.data != nullptr) {
    const int tiles = ConvPool::data_tiles(e.h) * ConvPool::data_tiles(e.w);
    blocks += static_cast<unsigned>(e.n * groups_of(e.c)) * blocks_over(tiles);
    bytes = std::max(bytes, correlation_bytes(e, e.gradient(), e.k));
  }
  const auto kernel = e.kernel == 3 ? backward_kernel<3> : backward_kernel<5>;
  kernel<<<blocks, kConvThreads, bytes, stream_of(context)>>>(task);
  check_launch("conv_pool_backward");
}

}  // namespace lockstep::cuda
