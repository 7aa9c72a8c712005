// Arithmetic as PTX defines it: integers wrap, floats round as the instruction says. What PTX lets
// a GPU approximate (.approx, .full) is computed as exactly as the host can, and denormals are
// kept where .ftz would flush them.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "ptx/ptx_types.h"

namespace cusim::ptx {

/// Rounding: to the nearest, to zero, down, up; with i to an integer in the float's own format.
enum Rounding {
  round_rn,
  round_rz,
  round_rm,
  round_rp,
  round_rni,
  round_rzi,
  round_rmi,
  round_rpi
};

template <class T>
using Unsigned = std::make_unsigned_t<T>;

// Integers: computed unsigned, so that they wrap.

template <class T>
inline T add(T a, T b) {
  return static_cast<T>(static_cast<Unsigned<T>>(a) + static_cast<Unsigned<T>>(b));
}
template <class T>
inline T subtract(T a, T b) {
  return static_cast<T>(static_cast<Unsigned<T>>(a) - static_cast<Unsigned<T>>(b));
}
template <class T>
inline T negate(T a) {
  return subtract(T{0}, a);
}
template <class T>
inline T absolute(T a) {
  return a < 0 ? negate(a) : a;
}

/// The type of twice the size.
template <class T>
struct WideOf {
  using type = std::conditional_t<std::is_signed_v<T>, std::conditional_t<sizeof(T) == 2, s32, s64>,
                                  std::conditional_t<sizeof(T) == 2, u32, u64>>;
};
template <>
struct WideOf<u64> {
  using type = unsigned __int128;
};
template <>
struct WideOf<s64> {
  using type = __int128;
};
template <class T>
using Wide = typename WideOf<T>::type;

template <class T>
inline Wide<T> multiply_wide(T a, T b) {
  return static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b);
}
template <class T>
inline T multiply_low(T a, T b) {
  return static_cast<T>(multiply_wide(a, b));
}
template <class T>
inline T multiply_high(T a, T b) {
  return static_cast<T>(multiply_wide(a, b) >> (8 * sizeof(T)));
}
template <class T, class R>
inline Wide<T> multiply_wide_add(T a, T b, R addend) {
  return add(multiply_wide(a, b), as<Wide<T>>(addend));
}

/// a + b + carry_in; with kCarryOut `carry_out` tells whether that did not fit.
template <bool kCarryOut, class T>
inline T add_carry(T a, T b, bool carry_in, bool& carry_out) {
  using U = Unsigned<T>;
  const auto sum = static_cast<U>(static_cast<U>(a) + static_cast<U>(b));
  const auto total = static_cast<U>(sum + carry_in);
  if (kCarryOut) carry_out = sum < static_cast<U>(a) || total < sum;
  return static_cast<T>(total);
}
/// a - b - borrow_in, the same.
template <bool kBorrowOut, class T>
inline T subtract_borrow(T a, T b, bool borrow_in, bool& borrow_out) {
  using U = Unsigned<T>;
  const auto difference = static_cast<U>(static_cast<U>(a) - static_cast<U>(b));
  const auto total = static_cast<U>(difference - borrow_in);
  if (kBorrowOut) borrow_out = static_cast<U>(a) < static_cast<U>(b) || difference < total;
  return static_cast<T>(total);
}

/// Division by 0 gives all ones, its remainder the dividend, as on a GPU.
template <class T>
inline T divide(T a, T b) {
  if (b == 0) return static_cast<T>(-1);
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return negate(a);
  }
  return static_cast<T>(a / b);
}
template <class T>
inline T remainder(T a, T b) {
  if (b == 0) return a;
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return 0;
  }
  return static_cast<T>(a % b);
}

/// `value + error` rounded to T in direction R, where `nearest` is it rounded to the nearest and
/// the sign of `excess` tells whether the true value lies above (> 0) or below it.
template <Rounding R, class T, class E>
inline T redirect(T nearest, E excess) {
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  const bool up = R == round_rp || (R == round_rz && nearest < 0);
  const bool down = R == round_rm || (R == round_rz && nearest > 0);
  if (excess > 0 && up) return std::nextafter(nearest, kInfinity);
  if (excess < 0 && down) return std::nextafter(nearest, -kInfinity);
  return nearest;
}

/// The exact sum a + b rounded to float. Two doubles hold the sum of a product of floats and a
/// float: `sum` and what is lost of it (Knuth's two-sum).
template <Rounding R>
inline f32 round_sum(f64 a, f64 b) {
  const f64 sum = a + b;
  const f64 b_part = sum - a;
  const f64 lost = (a - (sum - b_part)) + (b - b_part);
  const f32 nearest = static_cast<f32>(sum);
  const f64 excess = sum - static_cast<f64>(nearest);
  return redirect<R>(nearest, excess != 0 ? excess : lost);
}

template <Rounding R, class T>
inline T add(T a, T b) {
  if constexpr (R == round_rn) {
    return a + b;
  } else {
    return round_sum<R>(a, b);
  }
}
template <Rounding R, class T>
inline T multiply(T a, T b) {
  if constexpr (R == round_rn) {
    return a * b;
  } else {
    return round_sum<R>(static_cast<f64>(a) * static_cast<f64>(b), 0.0);
  }
}
/// a * b + c with one rounding.
template <Rounding R, class T>
inline T fused(T a, T b, T c) {
  if constexpr (R == round_rn) {
    return std::fma(a, b, c);
  } else {
    return round_sum<R>(static_cast<f64>(a) * static_cast<f64>(b), c);
  }
}

/// Limits to [0, 1], NaN to 0.
template <bool kSaturate, class T>
inline T saturate(T a) {
  if constexpr (!kSaturate) return a;
  return a > 0 ? std::min(a, T{1}) : T{0};
}

/// The smaller number; with kNaN a NaN when either is one, else the other. -0 < +0.
template <bool kNaN, class T>
inline T minimum(T a, T b) {
  if (std::isnan(a) || std::isnan(b)) {
    if (kNaN) return std::numeric_limits<T>::quiet_NaN();
    return std::isnan(a) ? b : a;
  }
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}
template <bool kNaN, class T>
inline T maximum(T a, T b) {
  return -minimum<kNaN>(-a, -b);
}

template <class T>
inline T inverse_sqrt(T a) {
  return 1 / std::sqrt(a);
}
template <class T>
inline bool is_finite(T a) {
  return std::isfinite(a);
}
template <class T>
inline bool is_infinite(T a) {
  return std::isinf(a);
}
template <class T>
inline bool is_number(T a) {
  return !std::isnan(a);
}
template <class T>
inline bool is_notanumber(T a) {
  return std::isnan(a);
}
template <class T>
inline bool is_normal(T a) {
  return std::isnormal(a);
}
template <class T>
inline bool is_subnormal(T a) {
  return std::fpclassify(a) == FP_SUBNORMAL;
}

}  // namespace cusim::ptx
