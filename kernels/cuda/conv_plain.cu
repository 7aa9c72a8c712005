// Convolution straight from its formula, in a fixed order: what a build without cuDNN uses, and a
// second opinion on it.
#include "lockstep/core/cuda/runtime.h"
#include "lockstep/kernels/cuda/conv_products.h"
#include "lockstep/kernels/cuda/extents.h"
#include "lockstep/kernels/cuda/launch.h"

namespace lockstep::cuda::plain {
namespace {

__global__ void forward(WindowExtents e, const float* __restrict__ x, const float* __restrict__ w,
                        float* __restrict__ y) {
  const PlaneThread thread = plane_thread();
  if (thread.plane >= static_cast<std::int64_t>(e.n) * e.k) return;
  const std::int64_t image = static_cast<std::int64_t>(e.h) * e.w;
  const int taps = e.kernel_h * e.kernel_w;
  const float* sample = x + thread.plane / e.k * e.c * image;
  const float* filter = w + thread.plane % e.k * e.c * taps;
  const int outputs = e.p * e.q;
  for (int output = thread.first; output < outputs; output += thread.step) {
    const int top = output / e.q * e.stride_h - e.pad_top;
    const int left = output % e.q * e.stride_w - e.pad_left;
    float sum = 0;
    for (int c = 0; c < e.c; ++c) {
      for (int r = 0; r < e.kernel_h; ++r) {
        const int row = top + r;
        if (row < 0 || row >= e.h) continue;
        for (int s = 0; s < e.kernel_w; ++s) {
          const int column = left + s;
          if (column < 0 || column >= e.w) continue;
          sum += sample[c * image + row * e.w + column] *
                 filter[static_cast<std::int64_t>(c) * taps + r * e.kernel_w + s];
        }
      }
    }
    y[thread.plane * outputs + output] = sum;
  }
}

/// The output whose tap `tap` lies on a place, along one axis; -1 where there is none.
__device__ int output_at(int place, int tap, int outputs, int stride, int pad) {
  const int reach = place + pad - tap;
  if (reach < 0 || reach % stride != 0) return -1;
  return reach / stride < outputs ? reach / stride : -1;
}

__global__ void backward_data(WindowExtents e, const float* __restrict__ dy,
                              const float* __restrict__ w, float* __restrict__ dx) {
  const PlaneThread thread = plane_thread();
  if (thread.plane >= static_cast<std::int64_t>(e.n) * e.c) return;
  const std::int64_t outputs = static_cast<std::int64_t>(e.p) * e.q;
  const int taps = e.kernel_h * e.kernel_w;
  const int channel = static_cast<int>(thread.plane % e.c);
  const float* sample = dy + thread.plane / e.c * e.k * outputs;
  const int places = e.h * e.w;
  for (int place = thread.first; place < places; place += thread.step) {
    float sum = 0;
    for (int k = 0; k < e.k; ++k) {
      const float* filter = w + (static_cast<std::int64_t>(k) * e.c + channel) * taps;
      for (int r = 0; r < e.kernel_h; ++r) {
        const int p = output_at(place / e.w, r, e.p, e.stride_h, e.pad_top);
        if (p < 0) continue;
        for (int s = 0; s < e.kernel_w; ++s) {
          const int q = output_at(place % e.w, s, e.q, e.stride_w, e.pad_left);
          if (q >= 0) sum += sample[k * outputs + p * e.q + q] * filter[r * e.kernel_w + s];
        }
      }
    }
    dx[thread.plane * places + place] = sum;
  }
}

constexpr int kWeightThreads = 256;

/// One block for each weight: its threads share the outputs of all samples.
__global__ void __launch_bounds__(kWeightThreads)
    backward_weights(WindowExtents e, const float* __restrict__ x, const float* __restrict__ dy,
                     float* __restrict__ dw, bool accumulate) {
  __shared__ float partial[kWarp];
  const int taps = e.kernel_h * e.kernel_w;
  const int tap = static_cast<int>(blockIdx.x) % taps;
  const int c = static_cast<int>(blockIdx.x) / taps % e.c;
  const int k = static_cast<int>(blockIdx.x) / taps / e.c;
  const int down = tap / e.kernel_w - e.pad_top;
  const int right = tap % e.kernel_w - e.pad_left;
  const int outputs = e.p * e.q;
  float sum = 0;
  for (int n = 0; n < e.n; ++n) {
    const float* image = x + (static_cast<std::int64_t>(n) * e.c + c) * e.h * e.w;
    const float* gradient = dy + (static_cast<std::int64_t>(n) * e.k + k) * outputs;
    for (int output = static_cast<int>(threadIdx.x); output < outputs; output += kWeightThreads) {
      const int row = output / e.q * e.stride_h + down;
      const int column = output % e.q * e.stride_w + right;
      if (row < 0 || row >= e.h || column < 0 || column >= e.w) continue;
      sum += image[row * e.w + column] * gradient[output];
    }
  }
  sum = block_sum(sum, partial);
  if (threadIdx.x == 0) dw[blockIdx.x] = accumulate ? dw[blockIdx.x] + sum : sum;
}

}  // namespace

void conv_forward(Context& context, const Window& window, ConstFloatView x, ConstFloatView w,
                  FloatView y) {
  const Launch launch = over_planes(y.shape[0] * y.shape[1], y.shape[2] * y.shape[3]);
  forward<<<launch.grid, launch.block, 0, stream_of(context)>>>(
      window_extents(window, x.shape, y.shape), x.data, w.data, y.data);
  check_launch("conv2d_forward");
}

void conv_backward_data(Context& context, const Window& window, ConstFloatView dy, ConstFloatView w,
                        FloatView dx) {
  const Launch launch = over_planes(dx.shape[0] * dx.shape[1], dx.shape[2] * dx.shape[3]);
  backward_data<<<launch.grid, launch.block, 0, stream_of(context)>>>(
      window_extents(window, dx.shape, dy.shape), dy.data, w.data, dx.data);
  check_launch("conv2d_backward_data");
}

void conv_backward_weights(Context& context, const Window& window, ConstFloatView x,
                           ConstFloatView dy, FloatView dw, bool accumulate) {
  backward_weights<<<int_extent(dw.shape.count()), kWeightThreads, 0, stream_of(context)>>>(
      window_extents(window, x.shape, dy.shape), x.data, dy.data, dw.data, accumulate);
  check_launch("conv2d_backward_parameters");
}

}  // namespace lockstep::cuda::plain
