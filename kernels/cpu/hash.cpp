// The hash of an arena's bits.
#include <algorithm>
#include <bit>

#include "lockstep/kernels/cpu/plain.h"
#include "lockstep/kernels/reduce.h"

namespace lockstep::cpu {
namespace {

// FNV-1a of Fowler, Noll and Vo, 64-bit (IETF draft-eastlake-fnv); here it takes a whole word where
// they take a byte.
constexpr std::uint64_t kOffsetBasis = 0xCBF29CE484222325;
constexpr std::uint64_t kPrime = 0x100000001B3;

}  // namespace

std::uint64_t hash_floats(const float* x, std::int64_t count, std::uint64_t* scratch) {
  std::int64_t chunks = 0;
  for (std::int64_t at = 0; at < count; at += kSumChunk) {
    std::uint64_t hash = kOffsetBasis;
    for (std::int64_t i = at; i < std::min(at + kSumChunk, count); ++i) {
      hash = (hash ^ std::bit_cast<std::uint32_t>(x[i])) * kPrime;
    }
    scratch[chunks++] = hash;
  }
  std::uint64_t hash = kOffsetBasis;
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) hash = (hash ^ scratch[chunk]) * kPrime;
  return hash;
}

}  // namespace lockstep::cpu
