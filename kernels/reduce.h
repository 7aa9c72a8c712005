// Sums that come out the same for any split of the work: chunks of 4096 elements, each summed in a
// fixed order, then a fixed binary tree over the chunks. And the plain sums and hashes of arenas.
//
// All pointers are device memory aligned to kAlignment, `count` is in floats.
#pragma once

#include <cstdint>

#include "lockstep/core/context.h"

namespace lockstep {

inline constexpr std::int64_t kSumChunk = 4096;

/// Doubles of scratch that the sums below need for `count` floats.
[[nodiscard]] constexpr std::int64_t sum_scratch_doubles(std::int64_t count) {
  return (count + kSumChunk - 1) / kSumChunk;
}

/// *result = sum of x[i]^2, in double from the chunk upwards. `scratch` has
/// sum_scratch_doubles(count) doubles.
void sum_of_squares(Context& context, const float* x, std::int64_t count, double* scratch,
                    double* result);

/// *result = sum of factor[i] * x[i]^2 / 2: the L2 term. Scratch as above.
void l2_term(Context& context, const float* factor, const float* x, std::int64_t count,
             double* scratch, double* result);

/// dst[i] += src[i].
void add_into(Context& context, float* dst, const float* src, std::int64_t count);

/// dst[i] = src[i].
void copy_into(Context& context, float* dst, const float* src, std::int64_t count);

/// dst[i] = 0.
void fill_zero(Context& context, float* dst, std::int64_t count);

/// *result = a 64-bit hash of the bits of x, equal on every backend: FNV-1a over the 32-bit words
/// of each chunk, then FNV-1a over the chunks' hashes in order. `scratch` has
/// sum_scratch_doubles(count) 64-bit words.
void hash_floats(Context& context, const float* x, std::int64_t count, std::uint64_t* scratch,
                 std::uint64_t* result);

}  // namespace lockstep
