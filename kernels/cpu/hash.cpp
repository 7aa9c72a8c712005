// The hash of an arena's bits.
#include <algorithm>
#include <bit>

#include "lockstep/kernels/cpu/plain.h"
#include "lockstep/kernels/fnv.h"
#include "lockstep/kernels/reduce.h"

namespace lockstep::cpu {

std::uint64_t hash_floats(const float* x, std::int64_t count, std::uint64_t* scratch) {
  std::int64_t chunks = 0;
  for (std::int64_t at = 0; at < count; at += kSumChunk) {
    std::uint64_t hash = kFnvOffsetBasis;
    for (std::int64_t i = at; i < std::min(at + kSumChunk, count); ++i) {
      hash = fnv_step(hash, std::bit_cast<std::uint32_t>(x[i]));
    }
    scratch[chunks++] = hash;
  }
  std::uint64_t hash = kFnvOffsetBasis;
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) hash = fnv_step(hash, scratch[chunk]);
  return hash;
}

}  // namespace lockstep::cpu
