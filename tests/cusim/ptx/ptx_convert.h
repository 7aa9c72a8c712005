// cvt: conversions between all number types.
#pragma once

#include <cmath>
#include <limits>

#include <immintrin.h>

#include "ptx/ptx_arithmetic.h"
#include "ptx/ptx_types.h"

namespace cusim::ptx {

inline f32 to_f32(f16 a) {
  return _cvtsh_ss(a.bits);
}
inline f32 to_f32(bf16 a) {
  return std::bit_cast<f32>(u32{a.bits} << 16);
}
inline f16 to_f16(f32 a) {
  return {_cvtss_sh(a, _MM_FROUND_TO_NEAREST_INT)};
}
inline bf16 to_bf16(f32 a) {
  if (std::isnan(a)) return {0x7FFF};
  const u32 bits = std::bit_cast<u32>(a);
  return {static_cast<u16>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16)};
}
inline u16 to_half_of(f16x2, f32 a) {
  return to_f16(a).bits;
}
inline u16 to_half_of(bf16x2, f32 a) {
  return to_bf16(a).bits;
}
/// cvt.rna.tf32: the nearest number with 10 bits after the point, ties away from 0.
inline b32 to_tf32(f32 a) {
  const u32 bits = std::bit_cast<u32>(a);
  return std::isfinite(a) ? (bits + 0x1000) & ~0x1FFFu : bits;
}

/// A float rounded to an integer.
template <Rounding R, class T>
inline T to_whole(T a) {
  if constexpr (R == round_rni) return std::nearbyint(a);
  if constexpr (R == round_rzi) return std::trunc(a);
  if constexpr (R == round_rmi) return std::floor(a);
  if constexpr (R == round_rpi) return std::ceil(a);
  return a;
}

/// Out of range gives the nearest number in range, NaN gives 0.
template <class D, class S>
inline D whole_to_integer(S a) {
  using Limits = std::numeric_limits<D>;
  if (std::isnan(a)) return 0;
  if (a <= static_cast<S>(Limits::min())) return Limits::min();
  if (a >= static_cast<S>(Limits::max())) return Limits::max();
  return static_cast<D>(a);
}

/// An integer or float as a float; a long double holds every number of PTX.
template <class D, Rounding R, class S>
inline D to_float(S a) {
  const D nearest = static_cast<D>(a);
  if constexpr (R == round_rz || R == round_rm || R == round_rp) {
    return redirect<R>(nearest, static_cast<long double>(a) - static_cast<long double>(nearest));
  } else {
    return nearest;
  }
}

template <class D, class S>
inline D limit_integer(S a) {
  using Limits = std::numeric_limits<D>;
  const auto wide = static_cast<__int128>(a);
  if (wide < Limits::min()) return Limits::min();
  if (wide > Limits::max()) return Limits::max();
  return static_cast<D>(a);
}

template <class D, Rounding R, bool kSaturate, class S>
inline D convert(S a) {
  if constexpr (std::is_same_v<S, f16> || std::is_same_v<S, bf16>) {
    return convert<D, R, kSaturate>(to_f32(a));
  } else if constexpr (std::is_same_v<D, f16>) {
    static_assert(std::is_same_v<S, f32> && R == round_rn, "only cvt.rn.f16.f32 is simulated");
    return to_f16(saturate<kSaturate>(a));
  } else if constexpr (std::is_same_v<D, bf16>) {
    static_assert(std::is_same_v<S, f32> && R == round_rn, "only cvt.rn.bf16.f32 is simulated");
    return to_bf16(saturate<kSaturate>(a));
  } else if constexpr (std::is_floating_point_v<D> && std::is_floating_point_v<S>) {
    return saturate<kSaturate>(to_float<D, R>(to_whole<R>(a)));
  } else if constexpr (std::is_floating_point_v<D>) {
    return saturate<kSaturate>(to_float<D, R>(a));
  } else if constexpr (std::is_floating_point_v<S>) {
    return whole_to_integer<D>(to_whole<R>(a));
  } else if constexpr (kSaturate) {
    return limit_integer<D>(a);
  } else {
    return static_cast<D>(a);
  }
}

}  // namespace cusim::ptx
