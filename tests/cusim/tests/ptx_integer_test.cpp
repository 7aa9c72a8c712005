// Integer instructions of translated kernels against the same operations on the host.
#include <algorithm>
#include <bit>
#include <limits>

#include "tests/ptx_support.h"

namespace cusim::test {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s32 = std::int32_t;
using s64 = std::int64_t;
using u128 = unsigned __int128;
using s128 = __int128;

/// Random numbers, and the corners of both sizes.
std::vector<u64> arguments() {
  std::vector<u64> x{0,
                     1,
                     ~u64{0},
                     u64{1} << 63,
                     0x80000000,
                     0x7FFFFFFFFFFFFFFF,
                     0x80000000FFFFFFFF,
                     0x7FFFFFFF80000001};
  for (u64 i = 0; i < 120; ++i) x.push_back(mixed(i));
  return x;
}

void check_all(const std::vector<u64>& y, std::size_t n, std::size_t i,
               const std::vector<u64>& want) {
  for (std::size_t k = 0; k < want.size(); ++k) {
    CAPTURE(i, k);
    CHECK(y[k * n + i] == want[k]);
  }
}

/// What a negative or other 32-bit number becomes as a 64-bit result.
u64 widened(s64 value) {
  return static_cast<u64>(value);
}

TEST_CASE("integer arithmetic is the host's") {
  const std::vector<u64> x = arguments();
  const std::size_t n = x.size();
  const std::vector<u64> y = map<u64>(kIntegers, x, 20);
  for (std::size_t i = 0; i < n; ++i) {
    const u64 v = x[i];
    const u64 other = x[(i + 1) % n];
    const u32 low = static_cast<u32>(v);
    const u32 high = static_cast<u32>(v >> 32);
    const s32 sl = static_cast<s32>(low);
    const s32 sh = static_cast<s32>(high);
    const s64 sv = static_cast<s64>(v);
    const s64 so = static_cast<s64>(other);
    const u32 absolute_low = sl < 0 ? 0U - low : low;
    const u64 absolute = sv < 0 ? 0 - v : v;
    check_all(y, n, i,
              {static_cast<u32>(low + high),
               static_cast<u32>(low - high),
               widened(s64{sl} * 12345),
               v * other,
               u64{low} * high >> 32,
               widened(s64{sl} * sh >> 32),
               static_cast<u64>(u128{v} * other >> 64),
               static_cast<u64>(s128{sv} * so >> 64),
               u64{low} * high + v,
               v / (n + high),
               v % (n + high),
               widened(sv / (-5 - static_cast<s64>(n))),
               widened(sl % static_cast<s32>(n + 7)),
               low / static_cast<u32>(n + 3),
               widened(std::min(sl, sh)),
               std::max(low, high),
               widened(static_cast<s32>(absolute_low)) + absolute,
               widened(static_cast<std::int16_t>(low) * static_cast<std::int16_t>(high)),
               widened(std::max(sv, so)),
               (0 - v) ^ widened(static_cast<std::int8_t>(low))});
  }
}

/// Byte `place` of {b, a}, 0xFF or 0 for its sign when place has bit 3 set.
u32 picked(u32 a, u32 b, u32 place) {
  const u32 byte = static_cast<std::uint8_t>((u64{b} << 32 | a) >> (8 * (place & 7)));
  if (place < 8) return byte;
  return byte >= 128 ? 0xFF : 0;
}

TEST_CASE("bit operations and fields are as PTX defines them") {
  const std::vector<u64> x = arguments();
  const std::size_t n = x.size();
  const std::vector<u64> y = map<u64>(kBitFields, x, 12);
  for (std::size_t i = 0; i < n; ++i) {
    const u64 v = x[i];
    const u32 low = static_cast<u32>(v);
    const u32 high = static_cast<u32>(v >> 32);
    const u32 shift = high & 31;
    const u32 length = high >> 8 & 31;
    u64 reversed = 0;
    for (u32 bit = 0; bit < 64; ++bit) reversed |= (v >> bit & 1) << (63 - bit);
    const u32 ffs = low == 0 ? 0 : static_cast<u32>(std::countr_zero(low)) + 1;
    const u64 pair = u64{high} << 32 | low;
    const u32 mask = (u32{1} << length) - 1;
    // The field as PTX's manual has it: bit by bit, from the top on the last bit again and again.
    u32 field = 0;
    u32 sign = 0;
    if (length > 0) sign = low >> std::min(shift + length - 1, 31U) & 1;
    for (u32 bit = 0; bit < 32; ++bit) {
      const bool inside = bit < length && shift + bit < 32;
      field |= (inside ? low >> (shift + bit) & 1 : sign) << bit;
    }
    const u32 shifted = low >> shift;
    const u32 wide_shift = std::min(shift + 5, 32U);
    check_all(
        y, n, i,
        {static_cast<u64>(std::popcount(low) + 100 * std::countl_zero(low)) + 10000 * ffs,
         static_cast<u64>(std::popcount(v) + 100 * std::countl_zero(v)), reversed >> 32, reversed,
         picked(low, high, 13) | picked(low, high, 1) << 8 | picked(low, high, 15) << 16 |
             picked(low, high, 3) << 24,
         static_cast<u32>(pair << shift >> 32), static_cast<u32>(pair >> wide_shift),
         (low & high) ^ (~low | 0x0F0F0F0F), low >> shift & mask, widened(static_cast<s32>(field)),
         (high & ~(mask << shift)) | (low & mask) << shift,
         shifted == 0 ? ~u32{0} : static_cast<u32>(31 - std::countl_zero(shifted))});
  }
}

TEST_CASE("conversions saturate where asked to") {
  std::vector<s64> x{0,    127,   128,    -128,         -129,         255,
                     256,  32767, 32768,  -32768,       -32769,       -1,
                     1000, 70000, -70000, s64{1} << 31, s64{1} << 32, -(s64{1} << 40)};
  const std::vector<s64> y = map<s64>(kSaturation, x, 4);
  const std::size_t n = x.size();
  for (std::size_t i = 0; i < n; ++i) {
    CAPTURE(x[i]);
    const s64 word = static_cast<s32>(x[i]);
    CHECK(y[i] == std::clamp<s64>(word, -128, 127));
    CHECK(y[n + i] == std::clamp<s64>(word, 0, 255));
    CHECK(y[2 * n + i] == std::clamp<s64>(word, -32768, 32767));
    CHECK(y[3 * n + i] == std::clamp<s64>(x[i], 0, 0xFFFFFFFF));
  }
}

TEST_CASE("Philox gives the published numbers") {
  const u64 seed = 0x123456789ABCDEF0;
  const int n = 100;
  const Buffer<u32> y(4 * n);
  REQUIRE(launch(kPhilox, dim3(4), dim3(32), 0, seed, y.get(), n) == cudaSuccess);
  const std::vector<u32> words = y.read();
  for (u32 i = 0; i < n; ++i) {
    std::array<u32, 4> c{i, 1, 2, 3};
    u32 k0 = static_cast<u32>(seed);
    u32 k1 = static_cast<u32>(seed >> 32);
    for (int round = 0; round < 10; ++round) {
      const u64 a = u64{0xD2511F53} * c[0];
      const u64 b = u64{0xCD9E8D57} * c[2];
      c = {static_cast<u32>(b >> 32) ^ c[1] ^ k0, static_cast<u32>(b),
           static_cast<u32>(a >> 32) ^ c[3] ^ k1, static_cast<u32>(a)};
      k0 += 0x9E3779B9;
      k1 += 0xBB67AE85;
    }
    CAPTURE(i);
    CHECK(std::equal(c.begin(), c.end(), words.begin() + 4 * i));
  }
}

}  // namespace
}  // namespace cusim::test
