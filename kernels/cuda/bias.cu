#include "lockstep/core/cuda/runtime.h"
#include "lockstep/kernels/cuda/bias.h"
#include "lockstep/kernels/cuda/extents.h"
#include "lockstep/kernels/cuda/launch.h"

namespace lockstep::cuda {
namespace {

__device__ float plus(float value, float b) {
  return value + b;
}

__device__ float4 plus(float4 value, float b) {
  return {value.x + b, value.y + b, value.z + b, value.w + b};
}

__device__ float sum_of(float value) {
  return value;
}

__device__ float sum_of(float4 value) {
  return (value.x + value.y) + (value.z + value.w);
}

/// T is float, or float4 where a plane is whole float4s; `places` counts Ts.
template <class T>
__global__ void add_bias_kernel(std::int64_t planes, int channels, int places,
                                const float* __restrict__ b, T* __restrict__ y) {
  const PlaneThread thread = plane_thread();
  if (thread.plane >= planes) return;
  const float bias = b[thread.plane % channels];
  T* plane = y + thread.plane * places;
  for (int i = thread.first; i < places; i += thread.step) plane[i] = plus(plane[i], bias);
}

constexpr int kSumThreads = 1024;

/// One block for each channel: its threads share the samples' planes.
template <class T>
__global__ void __launch_bounds__(kSumThreads)
    sum_planes(int samples, int channels, int places, const T* __restrict__ dy,
               float* __restrict__ db, bool accumulate) {
  __shared__ float partial[kWarp];
  const int channel = static_cast<int>(blockIdx.x);
  float sum = 0;
  const std::int64_t count = static_cast<std::int64_t>(samples) * places;
  // Sample n and place i of element n * places + i, moved on without a division.
  int n = static_cast<int>(threadIdx.x) / places;
  int i = static_cast<int>(threadIdx.x) % places;
  const int step_n = kSumThreads / places;
  const int step_i = kSumThreads % places;
  for (std::int64_t element = threadIdx.x; element < count; element += kSumThreads) {
    sum += sum_of(dy[(static_cast<std::int64_t>(n) * channels + channel) * places + i]);
    n += step_n;
    i += step_i;
    if (i >= places) {
      i -= places;
      ++n;
    }
  }
  sum = block_sum(sum, partial);
  if (threadIdx.x == 0) db[channel] = accumulate ? db[channel] + sum : sum;
}

/// For planes of one place: a block sums kWarp neighbouring columns of dy, a warp reading a row of
/// them at a time.
__global__ void __launch_bounds__(kSumThreads)
    sum_columns(int samples, int channels, const float* __restrict__ dy, float* __restrict__ db,
                bool accumulate) {
  constexpr int kRows = kSumThreads / kWarp;
  __shared__ float partial[kRows][kWarp + 1];  // one more, against bank conflicts
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int row = static_cast<int>(threadIdx.x) / kWarp;
  const int channel = static_cast<int>(blockIdx.x) * kWarp + lane;
  float sum = 0;
  if (channel < channels) {
    for (int n = row; n < samples; n += kRows)
      sum += dy[static_cast<std::int64_t>(n) * channels + channel];
  }
  partial[row][lane] = sum;
  __syncthreads();
  // Each warp now takes one column.
  const float total = warp_sum(partial[lane][row]);
  const int column = static_cast<int>(blockIdx.x) * kWarp + row;
  if (lane == 0 && column < channels) db[column] = accumulate ? db[column] + total : total;
}

}  // namespace

void add_bias(Context& context, const BiasShape& shape, const float* b, float* y) {
  const std::int64_t planes = shape.samples * shape.channels;
  const int channels = int_extent(shape.channels);
  const int places = int_extent(shape.places);
  if (places % 4 == 0 && aligned_to_16(y)) {
    const Launch launch = over_planes(planes, places / 4);
    add_bias_kernel<<<launch.grid, launch.block, 0, stream_of(context)>>>(
        planes, channels, places / 4, b, reinterpret_cast<float4*>(y));
  } else {
    const Launch launch = over_planes(planes, places);
    add_bias_kernel<<<launch.grid, launch.block, 0, stream_of(context)>>>(planes, channels, places,
                                                                          b, y);
  }
  check_launch("add_bias");
}

void sum_bias_gradient(Context& context, const BiasShape& shape, const float* dy, float* db,
                       bool accumulate) {
  const int samples = int_extent(shape.samples);
  const int channels = int_extent(shape.channels);
  const int places = int_extent(shape.places);
  const cudaStream_t stream = stream_of(context);
  if (places == 1) {
    sum_columns<<<(channels + kWarp - 1) / kWarp, kSumThreads, 0, stream>>>(samples, channels, dy,
                                                                            db, accumulate);
  } else if (places % 4 == 0 && aligned_to_16(dy)) {
    sum_planes<<<channels, kSumThreads, 0, stream>>>(
        samples, channels, places / 4, reinterpret_cast<const float4*>(dy), db, accumulate);
  } else {
    sum_planes<<<channels, kSumThreads, 0, stream>>>(samples, channels, places, dy, db, accumulate);
  }
  check_launch("sum_bias_gradient");
}

}  // namespace lockstep::cuda
