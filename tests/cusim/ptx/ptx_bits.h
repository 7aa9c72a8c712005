// Bit operations, comparisons and updates as PTX defines them; cmp_ and op_ names end with the PTX
// modifier.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>

#include "ptx/ptx_arithmetic.h"
#include "ptx/ptx_types.h"

namespace cusim::ptx {

struct op_add {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      return add(a, b);
    } else {
      return a + b;
    }
  }
};
struct op_min {
  template <class T>
  T operator()(T a, T b) const {
    return std::min(a, b);
  }
};
struct op_max {
  template <class T>
  T operator()(T a, T b) const {
    return std::max(a, b);
  }
};
struct op_and {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};
struct op_or {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};
struct op_xor {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a ^ b);
  }
};
struct op_exch {
  template <class T>
  T operator()(T, T b) const {
    return b;
  }
};
/// Counts up to b, then starts again at 0.
struct op_inc {
  template <class T>
  T operator()(T a, T b) const {
    return a >= b ? 0 : a + 1;
  }
};
/// Counts down from b to 0, then starts again at b.
struct op_dec {
  template <class T>
  T operator()(T a, T b) const {
    return a == 0 || a > b ? b : a - 1;
  }
};

template <class T>
inline bool either_nan(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(a) || std::isnan(b);
  return false;
}

// Ordered comparisons: false when an operand is NaN.
template <class T>
inline bool cmp_eq(T a, T b) {
  return a == b;
}
template <class T>
inline bool cmp_ne(T a, T b) {
  return a != b && !either_nan(a, b);
}
template <class T>
inline bool cmp_lt(T a, T b) {
  return a < b;
}
template <class T>
inline bool cmp_le(T a, T b) {
  return a <= b;
}
template <class T>
inline bool cmp_gt(T a, T b) {
  return a > b;
}
template <class T>
inline bool cmp_ge(T a, T b) {
  return a >= b;
}
// The same for unsigned integers: lower, lower or same, higher, higher or same.
template <class T>
inline bool cmp_lo(T a, T b) {
  return a < b;
}
template <class T>
inline bool cmp_ls(T a, T b) {
  return a <= b;
}
template <class T>
inline bool cmp_hi(T a, T b) {
  return a > b;
}
template <class T>
inline bool cmp_hs(T a, T b) {
  return a >= b;
}
// Unordered comparisons: true when an operand is NaN.
template <class T>
inline bool cmp_equ(T a, T b) {
  return a == b || either_nan(a, b);
}
template <class T>
inline bool cmp_neu(T a, T b) {
  return a != b;
}
template <class T>
inline bool cmp_ltu(T a, T b) {
  return !(a >= b);
}
template <class T>
inline bool cmp_leu(T a, T b) {
  return !(a > b);
}
template <class T>
inline bool cmp_gtu(T a, T b) {
  return !(a <= b);
}
template <class T>
inline bool cmp_geu(T a, T b) {
  return !(a < b);
}
template <class T>
inline bool cmp_num(T a, T b) {
  return !either_nan(a, b);
}
template <class T>
inline bool cmp_nan(T a, T b) {
  return either_nan(a, b);
}

/// What `set` writes: all ones or 0 for integers, 1 or 0 for floats.
template <class T>
inline T true_value(bool condition) {
  if constexpr (std::is_floating_point_v<T>) return condition ? 1 : 0;
  return static_cast<T>(condition ? -1 : 0);
}

template <class T>
inline T complement(T a) {
  return static_cast<T>(~a);
}
template <class T>
inline T logical_not(T a) {
  return a == 0 ? 1 : 0;
}

/// Shifts by the number of bits or more give 0, or all signs.
template <class T>
inline T shift_left(T a, u32 count) {
  return count >= 8 * sizeof(T) ? T{0} : static_cast<T>(a << count);
}
template <class T>
inline T shift_right(T a, u32 count) {
  if (count >= 8 * sizeof(T)) return a < 0 ? static_cast<T>(-1) : T{0};
  return static_cast<T>(a >> count);
}
inline u32 shift_clamp(u32 count) {
  return std::min(count, 32u);
}
inline u32 shift_wrap(u32 count) {
  return count & 31;
}
/// The upper half of {high, low} << count and the lower half of {high, low} >> count.
inline u32 funnel_shift_l(u32 low, u32 high, u32 count) {
  return static_cast<u32>(((u64{high} << 32 | low) << count) >> 32);
}
inline u32 funnel_shift_r(u32 low, u32 high, u32 count) {
  return static_cast<u32>((u64{high} << 32 | low) >> count);
}

/// lop3: bit 4a + 2b + c of `table` is the result for bits a, b, c.
inline u32 any_logic(u32 a, u32 b, u32 c, u32 table) {
  u32 result = 0;
  for (u32 row = 0; row < 8; ++row) {
    if ((table >> row & 1) == 0) continue;
    result |= ((row & 4) != 0 ? a : ~a) & ((row & 2) != 0 ? b : ~b) & ((row & 1) != 0 ? c : ~c);
  }
  return result;
}

/// prmt: each nibble of `selector` picks a byte of {b, a}, or with its top bit the byte's sign.
inline u32 permute_bytes(u32 a, u32 b, u32 selector) {
  const u64 bytes = u64{b} << 32 | a;
  u32 result = 0;
  for (u32 i = 0; i < 4; ++i) {
    const u32 pick = selector >> (4 * i) & 15;
    u32 byte = static_cast<u8>(bytes >> (8 * (pick & 7)));
    if ((pick & 8) != 0) byte = (byte & 0x80) != 0 ? 0xFF : 0;
    result |= byte << (8 * i);
  }
  return result;
}

template <class T>
inline u32 count_ones(T a) {
  return static_cast<u32>(std::popcount(a));
}
template <class T>
inline u32 count_leading_zeros(T a) {
  return static_cast<u32>(std::countl_zero(a));
}
template <class T>
inline T reverse_bits(T a) {
  T result = 0;
  for (std::size_t i = 0; i < 8 * sizeof(T); ++i) {
    result = static_cast<T>(result << 1 | (a >> i & 1));
  }
  return result;
}
/// bfind: place of the highest bit that differs from the sign, or how far it is from the top;
/// all ones when there is none.
template <bool kShiftAmount, class T>
inline u32 find_high_bit(T a) {
  const auto bits = static_cast<Unsigned<T>>(a < 0 ? ~a : a);
  if (bits == 0) return ~0u;
  const auto zeros = static_cast<u32>(std::countl_zero(bits));
  return kShiftAmount ? zeros : static_cast<u32>(8 * sizeof(T)) - 1 - zeros;
}
/// bfe: `length` bits from `start`; signed types repeat the highest of them (the top bit of `a`
/// when the field reaches over it).
template <class T>
inline T extract_bits(T a, u32 start, u32 length) {
  constexpr u32 kTop = 8 * sizeof(T) - 1;
  start &= 0xFF;
  length &= 0xFF;
  if (length == 0) return 0;
  const auto top = static_cast<Unsigned<T>>(a) >> std::min(start + length - 1, kTop) & 1;
  const auto field = static_cast<Unsigned<T>>(shift_right(a, start));
  const Unsigned<T> above = shift_left(complement(Unsigned<T>{0}), length);
  const bool negative = std::is_signed_v<T> && top != 0;
  return static_cast<T>(negative ? field | above : field & complement(above));
}
/// bfi: `base` with `length` bits from `start` replaced by the lowest of `field`.
template <class T>
inline T insert_bits(T field, T base, u32 start, u32 length) {
  start &= 0xFF;
  length &= 0xFF;
  const T ones = complement(shift_left(complement(T{0}), length));
  const T mask = shift_left(ones, start);
  return static_cast<T>((base & ~mask) | (shift_left(field, start) & mask));
}

/// Elements to one register, the first in the lowest bits.
template <class T, class... Elements>
inline T pack(Elements... elements) {
  constexpr u32 kBits = 8 * sizeof(T) / sizeof...(elements);
  u64 result = 0;
  u32 at = 0;
  const auto put = [&](u64 element) {
    result |= (element & (~u64{0} >> (64 - kBits))) << at;
    at += kBits;
  };
  (put(static_cast<u64>(elements)), ...);
  return as<T>(result);
}
/// Element `index` of a register, counted from the lowest bits.
template <class T, class R>
inline void unpack(T whole, u32 index, R& element) {
  const auto bits = std::bit_cast<unsigned_of_size<sizeof(T)>>(whole);
  element = static_cast<R>(bits >> (8 * sizeof(R) * index));
}
template <class T>
inline void unpack(T, u32, Ignored&) {}

}  // namespace cusim::ptx
