// Internal. FNV-1a of Fowler, Noll and Vo, 64-bit (IETF draft-eastlake-fnv); here it takes a whole
// word where they take a byte.
#pragma once

#include <cstdint>

namespace lockstep {

inline constexpr std::uint64_t kFnvOffsetBasis = 0xCBF29CE484222325;

[[nodiscard]] constexpr std::uint64_t fnv_step(std::uint64_t hash, std::uint64_t word) {
  constexpr std::uint64_t kPrime = 0x100000001B3;
  return (hash ^ word) * kPrime;
}

}  // namespace lockstep
