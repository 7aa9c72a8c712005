// The last block of a launch, which finishes what all began. Internal.
#pragma once

namespace lockstep::cuda {

/// True, in every thread, for the last of `blocks` blocks that ask with this ticket: it sees what
/// the others wrote before they asked. The ticket is 0 before and after. All threads call it.
__device__ inline bool is_last_block(unsigned* ticket, unsigned blocks) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicInc(ticket, blocks - 1) == blocks - 1;
  __syncthreads();
  __threadfence();
  return last;
}

/// Adds up what `parts` blocks wrote: calls write(i, sum over p of partial[p * stride + i]) for
/// i < count. The order of a sum depends on `parts` alone. Threads share the runs of parts, and a
/// run's loads are in flight together; `sums` is shared memory for count * ceil(parts / 8) floats.
/// All threads call it.
template <class Write>
__device__ void add_parts(const float* partial, int parts, int stride, int count, float* sums,
                          Write write) {
  constexpr int kRun = 8;
  const int runs = (parts + kRun - 1) / kRun;
  const int t = static_cast<int>(threadIdx.x);
  const int threads = static_cast<int>(blockDim.x);
#pragma unroll 2
  for (int i = t; i < runs * count; i += threads) {
    const int first = i / count * kRun;
    float values[kRun];
#pragma unroll
    for (int p = 0; p < kRun; ++p) {
      values[p] = partial[min(first + p, parts - 1) * stride + i % count];
    }
    float sum = 0;
#pragma unroll
    for (int p = 0; p < kRun; ++p) sum += first + p < parts ? values[p] : 0.0F;
    sums[i] = sum;
  }
  __syncthreads();
  for (int i = t; i < count; i += threads) {
    float sum = 0;
    for (int run = 0; run < runs; ++run) sum += sums[run * count + i];
    write(i, sum);
  }
}

}  // namespace lockstep::cuda
