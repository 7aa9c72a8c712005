// The hash of an arena's bits. A chunk's hash is a chain, so it is one thread's work; the others of
// its block bring the words. The last block chains the chunks' hashes.
#include "lockstep/core/cuda/runtime.h"
#include "lockstep/kernels/cuda/chunk_sums.h"
#include "lockstep/kernels/cuda/kernels.h"
#include "lockstep/kernels/fnv.h"

namespace lockstep::cuda {
namespace {

/// The hash of words[0..count), in thread 0. All threads of the block call it.
template <class Word>
__device__ std::uint64_t hash_words(const Word* words, std::int64_t count) {
  constexpr int kTile = 1024;
  __shared__ Word tile[kTile];
  std::uint64_t hash = kFnvOffsetBasis;
  for (std::int64_t at = 0; at < count; at += kTile) {
    const int here = static_cast<int>(count - at < kTile ? count - at : kTile);
    for (int i = static_cast<int>(threadIdx.x); i < here; i += kThreads) tile[i] = words[at + i];
    __syncthreads();
    if (threadIdx.x == 0) {
      for (int i = 0; i < here; ++i) hash = fnv_step(hash, tile[i]);
    }
    __syncthreads();
  }
  return hash;
}

__global__ void hash_kernel(const std::uint32_t* words, std::int64_t count, std::uint64_t* scratch,
                            std::uint64_t* result) {
  std::uint64_t* hashes = scratch + kSumTickets;
  const std::int64_t begin = blockIdx.x * kSumChunk;
  const std::int64_t left = count - begin;
  const std::uint64_t hash = hash_words(words + begin, left < kSumChunk ? left : kSumChunk);
  if (threadIdx.x == 0 && left > 0) hashes[blockIdx.x] = hash;
  if (!is_last_block(reinterpret_cast<unsigned*>(scratch), gridDim.x)) return;
  const std::uint64_t all = hash_words(hashes, count == 0 ? 0 : gridDim.x);
  if (threadIdx.x == 0) *result = all;
}

}  // namespace

void hash_floats(Context& context, const float* x, std::int64_t count, std::uint64_t* scratch,
                 std::uint64_t* result) {
  hash_kernel<<<chunks_of(count), kThreads, 0, stream_of(context)>>>(
      reinterpret_cast<const std::uint32_t*>(x), count, scratch, result);
  check_launch("hash_floats");
}

}  // namespace lockstep::cuda
