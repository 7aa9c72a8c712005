// Floating-point instructions.
#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "tests/ptx_kernels.h"

namespace cusim::test {
namespace {

__global__ void float_math(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float v = x[i];
  const float p = fabsf(v) + 0.1F;
  const float results[] = {expf(v),        logf(p),   powf(p, 2.3F),    tanhf(v),       sinf(v),
                           cosf(1e5F * v), erff(v),   cbrtf(v),         fmodf(v, 0.7F), log1pf(p),
                           sqrtf(p),       rsqrtf(p), 1.0F / p,         v / 0.7F,       exp2f(v),
                           __expf(v),      __logf(p), __fdividef(v, p), rintf(v),       floorf(v),
                           ceilf(v),       truncf(v), roundf(v),        copysignf(p, v)};
  for (const float result : results) {
    *(y + i) = result;
    y += n;
  }
}

__global__ void double_math(const double* x, double* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const double v = x[i];
  const double p = fabs(v) + 0.1;
  const double results[] = {
      exp(v),  log(p),  pow(p, 2.3), pow(0.999, p * 1000), sqrt(p), 1 / p,       v / 3.0,
      cbrt(v), tanh(v), sin(v),      fma(v, v, p),         rint(v), fmod(v, 0.7)};
  for (const double result : results) {
    *(y + i) = result;
    y += n;
  }
}

__global__ void float_rounding(const float* a, const float* b, const float* c, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float results[] = {__fadd_rn(a[i], b[i]),       __fadd_rz(a[i], b[i]),
                           __fadd_rd(a[i], b[i]),       __fadd_ru(a[i], b[i]),
                           __fsub_rd(a[i], b[i]),       __fsub_ru(a[i], b[i]),
                           __fmul_rz(a[i], b[i]),       __fmul_rd(a[i], b[i]),
                           __fmul_ru(a[i], b[i]),       __fmaf_rn(a[i], b[i], c[i]),
                           __fmaf_rz(a[i], b[i], c[i]), __fmaf_rd(a[i], b[i], c[i]),
                           __fmaf_ru(a[i], b[i], c[i]), __saturatef(a[i])};
  for (const float result : results) {
    *(y + i) = result;
    y += n;
  }
}

#if __CUDA_ARCH__ >= 800
__device__ float max_nan(float a, float b) {
  float result;
  asm("{.reg .f32 t; mov.f32 t, %1; max.NaN.f32 %0, t, %2;}" : "=f"(result) : "f"(a), "f"(b));
  return result;
}
__device__ float min_nan(float a, float b) {
  float result;
  asm("min.ftz.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}
#endif

__global__ void min_max(const float* a, const float* b, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  y[i] = fminf(a[i], b[i]);
  y[n + i] = fmaxf(a[i], b[i]);
#if __CUDA_ARCH__ >= 800
  y[2 * n + i] = min_nan(a[i], b[i]);
  y[3 * n + i] = max_nan(a[i], b[i]);
#endif
}

#define CUSIM_COMPARE(bit, comparison)                                                  \
  asm("{.reg .pred p; setp." comparison ".f32 p, %1, %2; @p or.b32 %0, %0, " #bit "; }" \
      : "+r"(bits)                                                                      \
      : "f"(a[i]), "f"(b[i]))

__global__ void float_comparison(const float* a, const float* b, std::uint32_t* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  std::uint32_t bits = 0;
  CUSIM_COMPARE(1, "eq");
  CUSIM_COMPARE(2, "ne");
  CUSIM_COMPARE(4, "lt");
  CUSIM_COMPARE(8, "le");
  CUSIM_COMPARE(16, "gt");
  CUSIM_COMPARE(32, "ge");
  CUSIM_COMPARE(64, "equ");
  CUSIM_COMPARE(128, "neu");
  CUSIM_COMPARE(256, "ltu");
  CUSIM_COMPARE(512, "leu");
  CUSIM_COMPARE(1024, "gtu");
  CUSIM_COMPARE(2048, "geu");
  CUSIM_COMPARE(4096, "num");
  CUSIM_COMPARE(8192, "nan");
  y[i] = bits;
}

__global__ void conversion(const double* x, std::int64_t* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const double v = x[i];
  const float f = static_cast<float>(v);
  const std::int64_t results[] = {__float2int_rn(f),
                                  __float2int_rz(f),
                                  __float2int_rd(f),
                                  __float2int_ru(f),
                                  __double2int_rn(v),
                                  __double2int_rz(v),
                                  __double2int_rd(v),
                                  __double2int_ru(v),
                                  __float2uint_rn(f),
                                  __double2uint_rz(v),
                                  __double2ll_rn(v),
                                  __double2ll_rd(v),
                                  __float2ll_rz(f),
                                  static_cast<std::int64_t>(__double2ull_ru(v)),
                                  static_cast<std::int8_t>(f),
                                  static_cast<std::uint8_t>(f),
                                  static_cast<std::int16_t>(v),
                                  static_cast<std::uint16_t>(v),
                                  __float_as_int(f),
                                  __double_as_longlong(v)};
  for (const std::int64_t result : results) {
    *(y + i) = result;
    y += n;
  }
}

__global__ void narrowing(const double* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const double v = x[i];
  const int word = __double2hiint(v);
  const long long whole = __double_as_longlong(v);
  const float results[] = {__double2float_rn(v), __double2float_rz(v), __double2float_rd(v),
                           __double2float_ru(v), __int2float_rn(word), __int2float_rz(word),
                           __int2float_rd(word), __int2float_ru(word), __ll2float_rn(whole),
                           __ll2float_rz(whole), __ll2float_rd(whole), __ll2float_ru(whole)};
  for (const float result : results) {
    *(y + i) = result;
    y += n;
  }
}

__global__ void half_precision(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  y[i] = __half2float(__float2half(x[i]));
  y[n + i] = __bfloat162float(__float2bfloat16(x[i]));
  const float2 pair = __half22float2(__floats2half2_rn(x[i], -x[i]));
  y[2 * n + i] = pair.x;
  y[3 * n + i] = pair.y;
}

}  // namespace

const void* const kFloatMath = reinterpret_cast<const void*>(float_math);
const void* const kDoubleMath = reinterpret_cast<const void*>(double_math);
const void* const kFloatRounding = reinterpret_cast<const void*>(float_rounding);
const void* const kMinMax = reinterpret_cast<const void*>(min_max);
const void* const kFloatComparison = reinterpret_cast<const void*>(float_comparison);
const void* const kConversion = reinterpret_cast<const void*>(conversion);
const void* const kNarrowing = reinterpret_cast<const void*>(narrowing);
const void* const kHalf = reinterpret_cast<const void*>(half_precision);

}  // namespace cusim::test
