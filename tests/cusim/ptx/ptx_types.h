// Types of PTX, and registers: a register is an unsigned integer of its size (bool for a
// predicate), and every instruction reads it as the type it wants.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

namespace cusim::ptx {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s8 = std::int8_t;
using s16 = std::int16_t;
using s32 = std::int32_t;
using s64 = std::int64_t;
using b8 = u8;
using b16 = u16;
using b32 = u32;
using b64 = u64;
using f32 = float;
using f64 = double;
using pred = bool;
struct f16 {
  u16 bits;
};
struct bf16 {
  u16 bits;
};
struct f16x2 {};
struct bf16x2 {};

template <std::size_t kBytes>
using unsigned_of_size = std::conditional_t<
    kBytes == 1, u8,
    std::conditional_t<kBytes == 2, u16, std::conditional_t<kBytes == 4, u32, u64>>>;

/// The lowest bits of a register or literal as a T.
template <class T, class R>
inline T as(R bits) {
  if constexpr (std::is_same_v<T, R>) {
    return bits;
  } else {
    return std::bit_cast<T>(static_cast<unsigned_of_size<sizeof(T)>>(bits));
  }
}

/// Writes a register; an integer smaller than it is widened by its own sign, as PTX does.
template <class R, class T>
inline void set(R& destination, T value) {
  static_assert(sizeof(R) >= sizeof(T));
  if constexpr (std::is_integral_v<T>) {
    destination = static_cast<R>(value);
  } else {
    destination = std::bit_cast<unsigned_of_size<sizeof(T)>>(value);
  }
}

/// The register `_`.
struct Ignored {
  void operator=(bool) {}
};
template <class T>
inline void set(Ignored&, T) {}

}  // namespace cusim::ptx
