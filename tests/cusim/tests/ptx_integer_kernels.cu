// Integer instructions.
#include <cstdint>

#include "tests/ptx_kernels.h"

namespace cusim::test {
namespace {

__global__ void integers(const std::uint64_t* x, std::uint64_t* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const std::uint64_t v = x[i];
  const std::uint64_t other = x[(i + 1) % n];
  const auto low = static_cast<std::uint32_t>(v);
  const auto high = static_cast<std::uint32_t>(v >> 32);
  const auto sl = static_cast<std::int32_t>(low);
  const auto sh = static_cast<std::int32_t>(high);
  const auto sv = static_cast<std::int64_t>(v);
  const std::uint64_t results[] = {
      low + high,
      low - high,
      static_cast<std::uint64_t>(sl) * 12345,
      v * other,
      __umulhi(low, high),
      static_cast<std::uint64_t>(__mulhi(sl, sh)),
      __umul64hi(v, other),
      static_cast<std::uint64_t>(__mul64hi(sv, static_cast<std::int64_t>(other))),
      static_cast<std::uint64_t>(low) * high + v,
      v / (static_cast<std::uint64_t>(n) + high),
      v % (static_cast<std::uint64_t>(n) + high),
      static_cast<std::uint64_t>(sv / (-5 - n)),
      static_cast<std::uint64_t>(sl % (n + 7)),
      low / static_cast<std::uint32_t>(n + 3),
      static_cast<std::uint64_t>(min(sl, sh)),
      max(low, high),
      static_cast<std::uint64_t>(abs(sl)) + static_cast<std::uint64_t>(llabs(sv)),
      static_cast<std::uint64_t>(static_cast<std::int16_t>(low) * static_cast<std::int16_t>(high)),
      static_cast<std::uint64_t>(max(sv, static_cast<std::int64_t>(other))),
      static_cast<std::uint64_t>(-sv) ^ static_cast<std::uint64_t>(static_cast<std::int8_t>(low))};
  for (const std::uint64_t result : results) {
    *(y + i) = result;
    y += n;
  }
}

__global__ void bit_fields(const std::uint64_t* x, std::uint64_t* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const std::uint64_t v = x[i];
  const auto low = static_cast<std::uint32_t>(v);
  const auto high = static_cast<std::uint32_t>(v >> 32);
  const std::uint32_t shift = high & 31;
  std::uint32_t unsigned_field;
  std::int32_t signed_field;
  std::uint32_t inserted;
  std::uint32_t place;
  std::uint32_t picked;
  asm("bfe.u32 %0, %1, %2, %3;" : "=r"(unsigned_field) : "r"(low), "r"(shift), "r"(high >> 8 & 31));
  asm("bfe.s32 %0, %1, %2, %3;" : "=r"(signed_field) : "r"(low), "r"(shift), "r"(high >> 8 & 31));
  asm("bfi.b32 %0, %1, %2, %3, %4;"
      : "=r"(inserted)
      : "r"(low), "r"(high), "r"(shift), "r"(high >> 8 & 31));
  asm("prmt.b32 %0, %1, %2, 0x3F1D;" : "=r"(picked) : "r"(low), "r"(high));
  asm("bfind.u32 %0, %1;" : "=r"(place) : "r"(low >> shift));
  const std::uint64_t results[] = {
      static_cast<std::uint64_t>(__popc(low) + 100 * __clz(low) + 10000 * __ffs(low)),
      static_cast<std::uint64_t>(__popcll(v) + 100 * __clzll(v)),
      __brev(low),
      __brevll(v),
      picked,
      __funnelshift_l(low, high, shift),
      __funnelshift_rc(low, high, shift + 5),
      (low & high) ^ (~low | 0x0F0F0F0F),
      unsigned_field,
      static_cast<std::uint64_t>(signed_field),
      inserted,
      place};
  for (const std::uint64_t result : results) {
    *(y + i) = result;
    y += n;
  }
}

__global__ void saturation(const std::int64_t* x, std::int64_t* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const auto v = static_cast<int>(x[i]);
  int s8;
  unsigned u8;
  int s16;
  unsigned u32;
  asm("{.reg .s16 t; cvt.sat.s8.s32 t, %1; cvt.s32.s16 %0, t;}" : "=r"(s8) : "r"(v));
  asm("{.reg .u16 t; cvt.sat.u8.s32 t, %1; cvt.u32.u16 %0, t;}" : "=r"(u8) : "r"(v));
  asm("{.reg .s16 t; cvt.sat.s16.s32 t, %1; cvt.s32.s16 %0, t;}" : "=r"(s16) : "r"(v));
  asm("cvt.sat.u32.s64 %0, %1;" : "=r"(u32) : "l"(x[i]));
  y[i] = s8;
  y[n + i] = u8;
  y[2 * n + i] = s16;
  y[3 * n + i] = u32;
}

/// Ten rounds of Philox4x32 (Salmon et al., 2011).
__global__ void philox(std::uint64_t seed, std::uint32_t* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  std::uint32_t c0 = i, c1 = 1, c2 = 2, c3 = 3;
  auto k0 = static_cast<std::uint32_t>(seed);
  auto k1 = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint32_t h0 = __umulhi(0xD2511F53u, c0), l0 = 0xD2511F53u * c0;
    const std::uint32_t h1 = __umulhi(0xCD9E8D57u, c2), l1 = 0xCD9E8D57u * c2;
    c0 = h1 ^ c1 ^ k0;
    c1 = l1;
    c2 = h0 ^ c3 ^ k1;
    c3 = l0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  reinterpret_cast<uint4*>(y)[i] = make_uint4(c0, c1, c2, c3);
}

}  // namespace

const void* const kIntegers = reinterpret_cast<const void*>(integers);
const void* const kBitFields = reinterpret_cast<const void*>(bit_fields);
const void* const kSaturation = reinterpret_cast<const void*>(saturation);
const void* const kPhilox = reinterpret_cast<const void*>(philox);

}  // namespace cusim::test
