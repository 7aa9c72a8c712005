// Kernels that nvcc compiles and the translator takes over, as the tests launch them. The comments
// say what each thread writes.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

namespace cusim::test {

/// A kernel parameter with holes and an array.
struct Parameters {
  std::int8_t small;
  float numbers[3];
  double large;
  std::int16_t last;
};

// ptx_float_kernels.cu. `n` arguments; result k of argument i is y[k * n + i].
extern const void* const kFloatMath;        // (const float* x, float* y, int n)
extern const void* const kDoubleMath;       // (const double* x, double* y, int n)
extern const void* const kFloatRounding;    // (const float* a, b, c, float* y, int n): 14 results
extern const void* const kMinMax;           // (const float* a, b, float* y, int n): 4 results
extern const void* const kFloatComparison;  // (const float* a, b, uint32_t* y, int n): a bit each
extern const void* const kConversion;       // (const double* x, int64_t* y, int n): 20 results
extern const void* const kNarrowing;        // (const double* x, float* y, int n): 12 results
extern const void* const kHalf;             // (const float* x, float* y, int n): 4 results

// ptx_integer_kernels.cu
extern const void* const kIntegers;    // (const uint64_t* x, uint64_t* y, int n): 20 results
extern const void* const kBitFields;   // (const uint64_t* x, uint64_t* y, int n): 12 results
extern const void* const kSaturation;  // (const int64_t* x, int64_t* y, int n): 4 results
extern const void* const kPhilox;      // (uint64_t seed, uint32_t* y, int n): 4 words each

// ptx_memory_kernels.cu
extern const void* const kVectors;     // (const float4* x, const uchar4* b, double2* y, int n)
extern const void* const kStructs;     // (Parameters, Parameters, double* y, int index): 8 results
extern const void* const kVariables;   // (int* y): y[i] = constant[i] + counters[i]++
extern const void* const kLocalArray;  // (const int* x, int* y, int n): reversed within 16
extern const void* const kTranspose;   // (const float* x, float* y, int n): static shared memory
extern const void* const kDynamic;     // (const int* x, int* y): reversed within a block
extern const void* const kFunctions;   // (const int* x, int* y, int n): calls and a switch
extern const void* const
    kAtomics;  // (int* i, unsigned* u, unsigned long long* w, float* f, double* d)
extern const void* const kFences;  // (int* y): griddepcontrol, fences, sleep; y[i] = i
extern const void* const kPrintf;  // ()
/// The host's handle of `__constant__ int constant[64]`.
cudaError_t set_constants(const int* values, std::size_t count);

// ptx_warp_kernels.cu
extern const void* const kShuffles;    // (const int* x, int* y): 8 results of 32 lanes
extern const void* const kVotes;       // (const int* x, unsigned* y): 8 results of 32 lanes
extern const void* const kBlockSum;    // (const float* x, float* y, int n): one sum per block
extern const void* const kBlockVotes;  // (const int* x, int* y): count, or, and
extern const void* const kReductions;  // (const int* x, int* y): 6 results of 32 lanes; sm_80

// ptx_fault_kernels.cu: each does one thing wrong in thread 3 of a block.
extern const void* const kMisaligned;      // (float* x): float4 at x + 1
extern const void* const kBehindShared;    // (int* y, int index): reads shared[index] of 64
extern const void* const kBehindMemory;    // (float* x, int index): writes x[index]
extern const void* const kAssert;          // (int value): assert(value == 3)
extern const void* const kTrap;            // ()
extern const void* const kUnequalBarrier;  // (float* x): half of a warp joins a shuffle of all

}  // namespace cusim::test
