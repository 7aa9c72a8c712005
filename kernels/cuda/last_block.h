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

}  // namespace lockstep::cuda
