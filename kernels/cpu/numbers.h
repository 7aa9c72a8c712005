// Small helpers that several files of one instruction set share.
#pragma once

#include "lockstep/kernels/cpu/simd.h"

namespace lockstep::cpu::LOCKSTEP_CPU_SET {

using Index = std::int64_t;

LOCKSTEP_INLINE Index smaller(Index a, Index b) {
  return a < b ? a : b;
}
LOCKSTEP_INLINE Index larger(Index a, Index b) {
  return a > b ? a : b;
}
LOCKSTEP_INLINE Index at_least_zero(Index value) {
  return larger(value, 0);
}

LOCKSTEP_INLINE void zero(float* to, Index count) {
  __builtin_memset(to, 0, sizeof(float) * static_cast<unsigned long>(count));
}

/// Bytes up to a whole number of cache lines: parts of a workspace begin at lines.
LOCKSTEP_INLINE Index whole_lines(Index bytes) {
  return (bytes + 63) / 64 * 64;
}

}  // namespace lockstep::cpu::LOCKSTEP_CPU_SET
