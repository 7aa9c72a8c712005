// Kernels that do one thing wrong.
#undef NDEBUG  // a release build asserts here too
#include <cassert>

#include "tests/ptx_kernels.h"

namespace cusim::test {
namespace {

constexpr int kGuilty = 3;

__global__ void misaligned(float* x) {
  if (threadIdx.x == kGuilty) *reinterpret_cast<float4*>(x + 1) = float4{};
}

__global__ void behind_shared(int* y, int index) {
  __shared__ int shared[64];
  shared[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncthreads();
  if (threadIdx.x == kGuilty) y[0] = shared[index];
}

__global__ void behind_memory(float* x, int index) {
  if (threadIdx.x == kGuilty) x[index] = 1;
}

__global__ void asserting(int value) {
  assert(value == 3 || threadIdx.x != kGuilty);
}

__global__ void trapping() {
  if (threadIdx.x == kGuilty) __trap();
}

__global__ void unequal_barrier(float* x) {
  if (threadIdx.x < 16) x[threadIdx.x] = __shfl_xor_sync(0xFFFFFFFF, x[threadIdx.x], 1);
}

}  // namespace

const void* const kMisaligned = reinterpret_cast<const void*>(misaligned);
const void* const kBehindShared = reinterpret_cast<const void*>(behind_shared);
const void* const kBehindMemory = reinterpret_cast<const void*>(behind_memory);
const void* const kAssert = reinterpret_cast<const void*>(asserting);
const void* const kTrap = reinterpret_cast<const void*>(trapping);
const void* const kUnequalBarrier = reinterpret_cast<const void*>(unequal_barrier);

}  // namespace cusim::test
