// Convolution + ReLU + max-pooling in one kernel: the small tile of outputs that a thread computes
// is a pooling window.
#include "lockstep/core/cuda/runtime.h"
#include "lockstep/kernels/cuda/fused_conv.h"
#include "lockstep/kernels/cuda/kernels.h"
#include "lockstep/kernels/fused_geometry.h"

namespace lockstep::cuda {
namespace {

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
    forward_kernel(const __grid_constant__ ConvPool e, bool relu, const float* x, const float* w,
                   const float* b, float* y, std::uint8_t* argmax) {
  constexpr int kArea = kKernel * kKernel;
  const Tile tile = e.image();
  const Walk walk(tile.rows, tile.pitch);
  const int planes = e.planes_at_once(tile, e.c);
  const int n = static_cast<int>(blockIdx.x);
  const int k0 = static_cast<int>(blockIdx.y) % groups_of(e.k) * kGroup;
  const int chunk = static_cast<int>(blockIdx.y) / groups_of(e.k);
  const int window = chunk * kConvThreads + static_cast<int>(threadIdx.x);
  const bool active = window < e.p * e.q;
  float4* weights = shared_memory;
  auto* image = reinterpret_cast<float*>(weights + planes * kArea);

  // A group's channels beyond the last are computed as the last, without branches around loads, and
  // not stored.
  const auto k_of = [&](int channel) { return min(k0 + channel, e.k - 1); };
  const auto bias = [&](int channel) { return b != nullptr ? b[k_of(channel)] : 0.0F; };
  const float4 bias_of_four = {bias(0), bias(1), bias(2), bias(3)};
  float4 sums[kPool][kPool];
#pragma unroll
  for (int i = 0; i < kPool; ++i) {
#pragma unroll
    for (int j = 0; j < kPool; ++j) sums[i][j] = bias_of_four;
  }

  for (int c0 = 0; c0 < e.c; c0 += planes) {
    const int here = min(planes, e.c - c0);
    __syncthreads();
    load_image(e, tile, walk, here, x + (std::int64_t{n} * e.c + c0) * e.h * e.w, image);
    for (int i = static_cast<int>(threadIdx.x); i < here * kArea; i += kConvThreads) {
      const auto weight = [&](int channel) { return w[(k_of(channel) * e.c + c0) * kArea + i]; };
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

}  // namespace lockstep::cuda
