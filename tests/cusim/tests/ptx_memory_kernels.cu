// Memory: vectors, parameters, variables, shared and local memory, calls, atomics, output.
#include <cstdint>
#include <cstdio>

#include "tests/ptx_kernels.h"

namespace cusim::test {
namespace {

__constant__ int constant[64];
__constant__ float fixed[3] = {0.5F, -1.25F, 3.0F};
__device__ int counters[64] = {100, 200, 300};

__global__ void vectors(const float4* __restrict__ x, const uchar4* __restrict__ b, double2* y,
                        int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float4 v = __ldg(x + i);
  const uchar4 bytes = b[i];
  const short2 shorts = reinterpret_cast<const short2*>(b)[i];
  __stcs(y + i, make_double2(v.x + v.y * bytes.x + shorts.x, v.z + v.w * bytes.w + shorts.y));
}

__global__ void structs(Parameters first, const __grid_constant__ Parameters second, double* y,
                        int index) {
  y[0] = first.small;
  y[1] = first.numbers[1];
  y[2] = first.large;
  y[3] = first.last;
  y[4] = second.small;
  y[5] = second.numbers[index];
  y[6] = second.large + fixed[index];
  y[7] = second.last;
}

__global__ void variables(int* y) {
  const int i = threadIdx.x;
  y[i] = constant[i] + atomicAdd(&counters[i], 1);
}

__global__ void local_array(const int* x, int* y, int n) {
  int values[16];
  for (int i = 0; i < 16; ++i) values[i] = x[i] * n;
  y[threadIdx.x] = values[(15 - threadIdx.x) & 15];
}

__global__ void transpose(const float* x, float* y, int n) {
  __shared__ float tile[32][33];
  const int a = blockIdx.x * 32 + threadIdx.x;
  const int b = blockIdx.y * 32 + threadIdx.y;
  tile[threadIdx.y][threadIdx.x] = x[b * n + a];
  __syncthreads();
  y[(blockIdx.x * 32 + threadIdx.y) * n + blockIdx.y * 32 + threadIdx.x] =
      tile[threadIdx.x][threadIdx.y];
}

__global__ void dynamic(const int* x, int* y) {
  extern __shared__ __align__(16) int values[];
  __shared__ int last;
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  values[threadIdx.x] = x[i];
  if (threadIdx.x == 0) last = blockDim.x - 1;
  __syncthreads();
  y[i] = values[last - threadIdx.x];
}

__device__ __noinline__ int weighted(const int* values, int weight, std::int64_t offset) {
  return values[0] * weight + static_cast<int>(offset);
}
__device__ __noinline__ void exchange(int& a, int& b) {
  const int t = a;
  a = b;
  b = t;
}

__global__ void functions(const int* x, int* y, int n) {
  const int i = threadIdx.x;
  int a = weighted(x + i, n, 1000);
  int b = x[i];
  exchange(a, b);
  switch (i % 9) {
    case 0:
      y[i] = a * 3;
      break;
    case 1:
      y[i] = a / 3;
      break;
    case 2:
      a ^= n;
      y[i] = a + b;
      break;
    case 3:
      y[i] = b << 2;
      break;
    case 4:
      y[i] = b - 1;
      break;
    case 5:
      y[i] = x[a & 7];
      break;
    case 6:
      y[i] = -a;
      break;
    case 7:
      y[i] = ~b;
      break;
    default:
      y[i] = a - b;
      break;
  }
}

__global__ void atomics(int* i, unsigned* u, unsigned long long* w, float* f, double* d) {
  const int t = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  __shared__ unsigned in_block;
  if (threadIdx.x == 0) in_block = 0;
  __syncthreads();
  atomicAdd(&in_block, 1u);
  atomicAdd(i, t);
  atomicMin(i + 1, -t);
  atomicMax(i + 2, t);
  atomicExch(i + 3, 7);
  atomicSub(i + 4, 2);
  atomicInc(u, 9u);
  atomicDec(u + 1, 9u);
  atomicAnd(u + 2, ~(1u << (t & 31)));
  atomicOr(u + 3, 1u << (t & 31));
  atomicXor(u + 4, static_cast<unsigned>(t));
  atomicMax(u + 5, atomicAdd(u + 6, 1u));
  atomicCAS(u + 7, 0u, 5u);
  atomicAdd(w, 1ull << 33);
  atomicMax(w + 1, static_cast<unsigned long long>(t) << 40);
  atomicAdd(f, 0.5F);
  atomicAdd(d, 0.25);
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(u + 8, in_block);
}

__global__ void fences(int* y) {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
  y[threadIdx.x] = threadIdx.x;
  __threadfence_block();
  __threadfence();
  __threadfence_system();
  __nanosleep(10);
  __syncwarp();
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

__global__ void print() {
  if (threadIdx.x == 1)
    printf("%d%% %5.2f %s %c %llu %-4u| %x\n", -7, 2.5, "text", 'c', 1ull << 40, 12u, 255);
}

}  // namespace

const void* const kVectors = reinterpret_cast<const void*>(vectors);
const void* const kStructs = reinterpret_cast<const void*>(structs);
const void* const kVariables = reinterpret_cast<const void*>(variables);
const void* const kLocalArray = reinterpret_cast<const void*>(local_array);
const void* const kTranspose = reinterpret_cast<const void*>(transpose);
const void* const kDynamic = reinterpret_cast<const void*>(dynamic);
const void* const kFunctions = reinterpret_cast<const void*>(functions);
const void* const kAtomics = reinterpret_cast<const void*>(atomics);
const void* const kFences = reinterpret_cast<const void*>(fences);
const void* const kPrintf = reinterpret_cast<const void*>(print);

cudaError_t set_constants(const int* values, std::size_t count) {
  return cudaMemcpyToSymbol(constant, values, count * sizeof(int));
}

}  // namespace cusim::test
