// The gradients of convolution + ReLU + max-pooling in one kernel.
//
// For dx the planes in shared memory hold the gradient of the convolution's output, which is dy at
// each window's winner and 0 elsewhere, and the kernel is turned around.
//
// dw needs the winners alone: a thread adds up, for one pair of channels and a part of the windows,
// gradient * (the piece of the image under the kernel). Blocks write their sums to the workspace,
// and the last of each group of blocks adds them up in order.
#include <algorithm>

#include "lockstep/core/cuda/runtime.h"
#include "lockstep/kernels/cuda/fused_conv.h"
#include "lockstep/kernels/cuda/handles.h"
#include "lockstep/kernels/cuda/kernels.h"
#include "lockstep/kernels/cuda/last_block.h"
#include "lockstep/kernels/fused_geometry.h"

namespace lockstep::cuda {
namespace {

using fused::kDataTile;

/// What forward left, and the gradient of it: (n,k,p,q).
struct Pooled {
  const float* y;
  const std::uint8_t* argmax;
  const float* dy;
  bool relu;
};

/// The winner of a window, and the gradient there.
struct Winner {
  int place;
  float gradient;
};

/// Calls visit(at, winner) for a thread's windows of `planes` planes; `first` is the first window
/// of them and `start` walks a plane's windows.
template <class Visit>
__device__ void for_winners(const Pooled& pooled, const Walk& start, int planes, std::int64_t first,
                            Visit visit) {
  const auto load = [&](const Walk& at) {
    const std::int64_t i = first + (at.plane < planes ? at.index() : 0);
    const float y = pooled.y[i];
    const float dy = pooled.dy[i];
    return Winner{pooled.argmax[i], pooled.relu && y <= 0 ? 0.0F : dy};
  };
  copy_planes(start, planes, load, visit);
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
template <int kKernel, int kPool>
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
  const Walk image_walk(tile.rows, tile.pitch);
  const Walk window_walk(e.p, e.q);
  float sums[kSums] = {};
  const int first = shard * (e.n / task.shards) + part * cut.samples;
  const int end = min(first + cut.samples, (shard + 1) * (e.n / task.shards));
  for (int n = first; n < end; ++n) {
    __syncthreads();
    load_image(e, tile, image_walk, c_here, task.x + (std::int64_t{n} * e.c + c0) * e.h * e.w,
               image);
    for_winners(task.pooled, window_walk, k_here, (std::int64_t{n} * e.k + k0) * windows,
                [&](const Walk& at, const Winner& winner) {
                  gradients[at.index()] = winner.gradient;
                  corners[at.index()] = (at.row * kPool + winner.place / kPool) * tile.pitch +
                                        at.column * kPool + winner.place % kPool;
                });
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
  const auto write = [&](int i, float sum) {
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
  };
  add_parts(partial, cut.parts, kStride, pairs * kSums, image, write);
}

/// Stores the gradients of all elements of the window at `at`.
template <int kPool>
__device__ void spread(const Tile& tile, const Walk& at, const Winner& winner, float* to) {
  float* corner = to + at.plane * tile.plane + (at.row * kPool + tile.top) * tile.pitch +
                  at.column * kPool + tile.left;
#pragma unroll
  for (int place = 0; place < kPool * kPool; ++place) {
    corner[place / kPool * tile.pitch + place % kPool] =
        place == winner.place ? winner.gradient : 0.0F;
  }
}

/// One sample, a group of input channels and a run of tiles of dx; a thread has one tile.
template <int kKernel, int kPool>
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

  // Windows cover the same elements of every plane; the others stay 0.
  for (int i = static_cast<int>(threadIdx.x); i < planes * tile.plane; i += kConvThreads) {
    gradient[i] = 0;
  }
  const Walk walk(e.p, e.q);
  float4 sums[kDataTile][kDataTile] = {};
  for (int k0 = 0; k0 < e.k; k0 += planes) {
    const int here = min(planes, e.k - k0);
    __syncthreads();
    for_winners(task.pooled, walk, here, (std::int64_t{n} * e.k + k0) * e.p * e.q,
                [&](const Walk& place, const Winner& winner) {
                  spread<kPool>(tile, place, winner, gradient);
                });
    for (int i = static_cast<int>(threadIdx.x); i < here * kArea; i += kConvThreads) {
      const int turned = kArea - 1 - i % kArea;
      // Channels beyond the last are computed as the last, and not stored.
      const auto weight = [&](int channel) {
        const int c = min(c0 + channel, e.c - 1);
        return task.w[((k0 + i / kArea) * e.c + c) * kArea + turned];
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

template <int kKernel, int kPool>
__global__ void __launch_bounds__(kConvThreads)
    backward_kernel(const __grid_constant__ Backward task) {
  if (blockIdx.x < task.parameter_blocks) {
    parameter_block<kKernel, kPool>(task);
  } else {
    data_block<kKernel, kPool>(task);
  }
}

}  // namespace

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
  const auto kernel = e.kernel == 3 ? (e.pool == 2 ? backward_kernel<3, 2> : backward_kernel<3, 3>)
                                    : (e.pool == 2 ? backward_kernel<5, 2> : backward_kernel<5, 3>);
  kernel<<<blocks, kConvThreads, bytes, stream_of(context)>>>(task);
  check_launch("conv_pool_backward");
}

}  // namespace lockstep::cuda
