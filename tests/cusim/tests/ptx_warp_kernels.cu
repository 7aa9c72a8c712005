// Warp collectives and barriers.
#include "tests/ptx_kernels.h"

namespace cusim::test {
namespace {

constexpr unsigned kAll = 0xFFFFFFFF;

__global__ void shuffles(const int* x, int* y) {
  const int lane = threadIdx.x;
  const int v = x[lane];
  const int results[] = {__shfl_up_sync(kAll, v, 3),      __shfl_down_sync(kAll, v, 5),
                         __shfl_xor_sync(kAll, v, 9),     __shfl_sync(kAll, v, 7),
                         __shfl_up_sync(kAll, v, 2, 8),   __shfl_down_sync(kAll, v, 3, 16),
                         __shfl_xor_sync(kAll, v, 12, 8), __shfl_sync(kAll, v, 3, 4)};
  for (const int result : results) {
    y[lane] = result;
    y += 32;
  }
}

__global__ void votes(const int* x, unsigned* y) {
  const int lane = threadIdx.x;
  const int v = x[lane];
  const unsigned half = lane < 16 ? 0x0000FFFF : 0xFFFF0000;
  int same = 0;
  const unsigned all_same = __match_all_sync(half, lane / 16, &same);
  const unsigned results[] = {__ballot_sync(kAll, v > 0),
                              static_cast<unsigned>(__any_sync(half, v == x[3])),
                              static_cast<unsigned>(__all_sync(half, v > -1000)),
                              __match_any_sync(kAll, v & 3),
                              __match_any_sync(kAll, static_cast<long long>(lane / 5)),
                              all_same + static_cast<unsigned>(same),
                              __match_all_sync(kAll, lane / 16, &same),
                              __activemask() >> lane & 1};
  for (const unsigned result : results) {
    y[lane] = result;
    y += 32;
  }
}

__global__ void block_sum(const float* x, float* y, int n) {
  __shared__ float partial[8];
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    sum += x[i];
  }
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(kAll, sum, offset);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  sum = threadIdx.x < 8 ? partial[threadIdx.x] : 0;
  for (int offset = 4; offset > 0; offset /= 2) sum += __shfl_down_sync(kAll, sum, offset);
  if (threadIdx.x == 0) y[blockIdx.x] = sum;
}

__global__ void block_votes(const int* x, int* y) {
  const int v = x[threadIdx.x];
  if (threadIdx.x == 63) return;  // threads that have left count at no barrier
  const int count = __syncthreads_count(v > 0);
  const int any = __syncthreads_or(v > 1000);
  const int all = __syncthreads_and(v < 1000);
  if (threadIdx.x != 0) return;
  y[0] = count;
  y[1] = any != 0;
  y[2] = all != 0;
}

__global__ void reductions(const int* x, int* y) {
#if __CUDA_ARCH__ >= 800
  const int lane = threadIdx.x;
  const unsigned half = lane < 16 ? 0x0000FFFF : 0xFFFF0000;
  const int v = x[lane];
  const auto u = static_cast<unsigned>(v);
  y[lane] = __reduce_add_sync(kAll, v);
  y[32 + lane] = __reduce_min_sync(half, v);
  y[64 + lane] = static_cast<int>(__reduce_max_sync(half, u));
  y[96 + lane] = static_cast<int>(__reduce_and_sync(kAll, u | 0x100));
  y[128 + lane] = static_cast<int>(__reduce_or_sync(kAll, u));
  y[160 + lane] = static_cast<int>(__reduce_xor_sync(half, u));
#endif
}

}  // namespace

const void* const kShuffles = reinterpret_cast<const void*>(shuffles);
const void* const kVotes = reinterpret_cast<const void*>(votes);
const void* const kBlockSum = reinterpret_cast<const void*>(block_sum);
const void* const kBlockVotes = reinterpret_cast<const void*>(block_votes);
const void* const kReductions = reinterpret_cast<const void*>(reductions);

}  // namespace cusim::test
