#include "calibration/kernels.h"

namespace lockstep::calibration {
namespace {

constexpr int kStaticFloats = kStaticSharedBytes / static_cast<int>(sizeof(float));

__device__ float bias = kBias;

__global__ void add_value(float* x, float value, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) x[i] += value;
}

__global__ void add_bias(float* x) {
  x[threadIdx.x] += bias;
}

__global__ void reverse(float* x) {
  extern __shared__ float room[];
  room[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = room[blockDim.x - 1 - threadIdx.x];
}

__global__ void rotate(float* x) {
  __shared__ float room[kStaticFloats];
  room[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = room[(threadIdx.x + 1) % blockDim.x];
}

}  // namespace

Kernel add_value_kernel() {
  return reinterpret_cast<Kernel>(&add_value);
}
Kernel reverse_kernel() {
  return reinterpret_cast<Kernel>(&reverse);
}
Kernel rotate_kernel() {
  return reinterpret_cast<Kernel>(&rotate);
}
const void* bias_symbol() {
  return &bias;
}

cudaError_t launch_add_value(dim3 grid, dim3 block, cudaStream_t stream, float* x, float value,
                             int count) {
  add_value<<<grid, block, 0, stream>>>(x, value, count);
  return cudaPeekAtLastError();
}

cudaError_t launch_add_bias(float* x) {
  add_bias<<<1, 1>>>(x);
  return cudaPeekAtLastError();
}

}  // namespace lockstep::calibration
