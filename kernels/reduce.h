// Sums that come out the same for any split of the work: chunks of 4096 elements, each summed in a
// fixed order, then a fixed binary tree over the chunks. And the plain sums and hashes of arenas.
//
// All pointers are device memory aligned to kAlignment, `count` is in floats.
#pragma once

#include <cstdint>

#include "lockstep/core/context.h"

namespace lockstep {

inline constexpr std::int64_t kSumChunk = 4096;

/// Scratch of the sums and hashes begins with this many 64-bit words that count the blocks of a
/// CUDA launch that are done. They must be 0 before the first use and are 0 after each; so one
/// scratch serves any calls one after another.
inline constexpr std::int64_t kSumTickets = 1;

/// 64-bit words of scratch for `count` floats.
[[nodiscard]] constexpr std::int64_t sum_scratch_doubles(std::int64_t count) {
  return kSumTickets + (count + kSumChunk - 1) / kSumChunk;
}

/// *result = sum of factor[i] * x[i]^2 / 2: the L2 term, in double from the chunk upwards.
/// `scratch` has sum_scratch_doubles(count) doubles.
void l2_term(Context& context, const float* factor, const float* x, std::int64_t count,
             double* scratch, double* result);

/// dst[i] += src[i].
void add_into(Context& context, float* dst, const float* src, std::int64_t count);

/// sum[i] = sum over p in [0, count) of parts[p * stride + i], i < floats, by the binary tree over
/// p that splits at the largest power of two: (0+1)+(2+3) for four. These are the bits of the sums
/// over shards and over ranks. `sum` may be `parts`.
void sum_tree(Context& context, const float* parts, int count, std::int64_t stride,
              std::int64_t floats, float* sum);

/// dst[i] = src[i].
void copy_into(Context& context, float* dst, const float* src, std::int64_t count);

/// dst[i] = 0.
void fill_zero(Context& context, float* dst, std::int64_t count);

/// *result = a 64-bit hash of the bits of x, equal on every backend: FNV-1a over the 32-bit words
/// of each chunk, then FNV-1a over the chunks' hashes in order. `scratch` as above.
void hash_floats(Context& context, const float* x, std::int64_t count, std::uint64_t* scratch,
                 std::uint64_t* result);

}  // namespace lockstep
