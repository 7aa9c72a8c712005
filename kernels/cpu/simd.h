// Vectors of the instruction set that a per-set file is compiled for, by the compiler's vector
// extensions.
//
// A group of 16 samples is kParts vectors of kLanes floats. A kernel that needs no more than one
// vector per place treats the parts one after another ("for each part"): samples never meet except
// in sums over the batch.
#pragma once

#include <cstdint>
#if defined(__AVX2__)
#include <immintrin.h>  // for what the compiler makes single elements of: bytes to numbers and back
#endif

namespace lockstep::cpu::LOCKSTEP_CPU_SET {

/// Samples of a group in Layout::n16.
constexpr int kGroup = 16;

// Compilers make two vectors of eight lanes of one of sixteen: so the tests run the latter's
// kernels where there is no AVX-512 (cmake -D LOCKSTEP_SIXTEEN_LANES=ON).
#if defined(__AVX512F__) || defined(LOCKSTEP_SIXTEEN_LANES)
constexpr int kLanes = 16;
#elif defined(__AVX2__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif
constexpr int kParts = kGroup / kLanes;

typedef float Floats __attribute__((vector_size(kLanes * 4)));
typedef std::int32_t Ints __attribute__((vector_size(kLanes * 4)));

// Static and always inlined: a per-set object must define no symbol that another set's could
// replace.
#define LOCKSTEP_INLINE [[gnu::always_inline]] static inline

/// kLanes floats from `from`, which need not be aligned.
LOCKSTEP_INLINE Floats load(const float* from) {
  Floats value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

LOCKSTEP_INLINE void store(float* to, Floats value) {
  __builtin_memcpy(to, &value, sizeof value);
}

/// `value` in every lane.
LOCKSTEP_INLINE Floats broadcast(float value) {
  return value - Floats{};
}

/// Lanes of `a` where `mask` is all ones, of `b` where it is 0.
LOCKSTEP_INLINE Floats select(Ints mask, Floats a, Floats b) {
  return mask ? a : b;
}
LOCKSTEP_INLINE Ints select(Ints mask, Ints a, Ints b) {
  return mask ? a : b;
}

/// The numbers 0 to kLanes - 1 as a parameter pack, from which the shuffles below compute their
/// indices: lane l of `a` is l, lane l of `b` is kLanes + l.
template <int... I>
struct Lanes {};
template <int count, int... I>
struct CountLanes : CountLanes<count - 1, count - 1, I...> {};
template <int... I>
struct CountLanes<0, I...> {
  using Type = Lanes<I...>;
};
using AllLanes = CountLanes<kLanes>::Type;

typedef std::uint8_t Bytes __attribute__((vector_size(kLanes * 4)));

#if defined(__AVX512F__)
constexpr __mmask16 kAll = 0xffff;  // without a mask GCC 12 warns of its own header
#endif

/// kLanes bytes from `from` as numbers.
LOCKSTEP_INLINE Ints load_bytes(const std::uint8_t* from) {
#if defined(__AVX512F__)
  return reinterpret_cast<Ints>(
      _mm512_maskz_cvtepu8_epi32(kAll, _mm_loadu_si128((const __m128i_u*)from)));
#elif defined(__AVX2__) && !defined(LOCKSTEP_SIXTEEN_LANES)
  return reinterpret_cast<Ints>(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i_u*)from)));
#else
  Ints numbers;
  for (int i = 0; i < kLanes; ++i) numbers[i] = from[i];
  return numbers;
#endif
}

/// The lowest byte of each number, to `to`.
template <int... I>
LOCKSTEP_INLINE void store_low_bytes(std::uint8_t* to, Ints from, Lanes<I...>) {
#if defined(__AVX512F__)
  _mm_storeu_si128((__m128i_u*)to,
                   _mm512_maskz_cvtepi32_epi8(kAll, reinterpret_cast<__m512i>(from)));
#else
  const auto bytes = reinterpret_cast<Bytes>(from);
  const auto low = __builtin_shufflevector(bytes, bytes, (4 * I)...);
  __builtin_memcpy(to, &low, sizeof low);
#endif
}

template <int... I>
LOCKSTEP_INLINE Floats sum_neighbours(Floats a, Floats b, Lanes<I...>) {
  return __builtin_shufflevector(a, b, (2 * I)...) + __builtin_shufflevector(a, b, (2 * I + 1)...);
}

template <int... I>
LOCKSTEP_INLINE Floats interleave_low(Floats a, Floats b, Lanes<I...>) {
  return __builtin_shufflevector(a, b, (I / 2 + I % 2 * kLanes)...);
}

template <int... I>
LOCKSTEP_INLINE Floats interleave_high(Floats a, Floats b, Lanes<I...>) {
  return __builtin_shufflevector(a, b, ((kLanes + I) / 2 + I % 2 * kLanes)...);
}

/// Lane l of the result is the sum of the lanes of v[l]: neighbours are added until one number a
/// vector is left.
LOCKSTEP_INLINE Floats sum_each(const Floats (&v)[kLanes]) {
  Floats level[kLanes];
  for (int i = 0; i < kLanes; ++i) level[i] = v[i];
#pragma GCC unroll 4
  for (int left = kLanes / 2; left > 0; left /= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < left; ++i)
      level[i] = sum_neighbours(level[2 * i], level[2 * i + 1], AllLanes{});
  }
  return level[0];
}

/// The sum of all lanes, halves added to each other.
LOCKSTEP_INLINE float sum_lanes(Floats v) {
  float lane[kLanes];
  store(lane, v);
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) lane[i] += lane[i + half];
  }
  return lane[0];
}

/// Transposes a square: lane j of v[i] becomes lane i of v[j]. Each round interleaves the first
/// half of the vectors with the second, which moves every element's (vector, lane) bits round by
/// one.
LOCKSTEP_INLINE void transpose(Floats (&v)[kLanes]) {
#pragma GCC unroll 4
  for (int round = 1; round < kLanes; round *= 2) {
    Floats next[kLanes];
#pragma GCC unroll 8
    for (int i = 0; i < kLanes / 2; ++i) {
      next[2 * i] = interleave_low(v[i], v[i + kLanes / 2], AllLanes{});
      next[2 * i + 1] = interleave_high(v[i], v[i + kLanes / 2], AllLanes{});
    }
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) v[i] = next[i];
  }
}

}  // namespace lockstep::cpu::LOCKSTEP_CPU_SET
