// The sum of an arena by the chunks and the tree of kernels/reduce.h, in one launch. Internal.
#pragma once

#include "lockstep/kernels/cuda/elements.h"
#include "lockstep/kernels/cuda/last_block.h"
#include "lockstep/kernels/cuda/launch.h"
#include "lockstep/kernels/reduce.h"

namespace lockstep::cuda {

inline unsigned chunks_of(std::int64_t count) {
  return static_cast<unsigned>(count == 0 ? 1 : (count + kSumChunk - 1) / kSumChunk);
}

/// Adds up `count` values in place by a binary tree over their numbers: 0+1, 2+3, ... then those.
/// All threads of the block call it.
__device__ inline double tree_sum(double* values, std::int64_t count) {
  for (std::int64_t step = 1; step < count; step *= 2) {
    const std::int64_t stride = 2 * step * blockDim.x;
    for (std::int64_t i = 2 * step * threadIdx.x; i + step < count; i += stride) {
      values[i] += values[i + step];
    }
    __syncthreads();
  }
  return values[0];
}

/// Calls finish(sum over i < count of value4(i, elements left)) in one thread of the grid, which
/// has chunks_of(count) blocks of kThreads: each adds up a chunk, and the last one the chunks.
/// value4 gives the sum of four elements.
template <class Value4, class Finish>
__device__ void sum_chunks(std::int64_t count, double* scratch, Value4 value4, Finish finish) {
  __shared__ double partial[kThreads / kWarp];
  double* sums = scratch + kSumTickets;
  const std::int64_t begin = blockIdx.x * kSumChunk;
  const std::int64_t end = begin + kSumChunk < count ? begin + kSumChunk : count;
  double sum = 0;
  for (std::int64_t i = begin + 4 * threadIdx.x; i < end; i += 4 * kThreads) {
    sum += value4(i, end - i);
  }
  sum = block_sum(sum, partial);
  if (gridDim.x > 1) {
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
    if (!is_last_block(reinterpret_cast<unsigned*>(scratch), gridDim.x)) return;
    sum = tree_sum(sums, gridDim.x);
  }
  if (threadIdx.x == 0) finish(sum);
}

}  // namespace lockstep::cuda
