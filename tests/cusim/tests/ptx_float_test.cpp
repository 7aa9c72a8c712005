// Floating-point instructions of translated kernels against the host's libm and rounding modes.
#include <cfenv>
#include <cstring>
#include <functional>
#include <limits>

#include "tests/ptx_support.h"

namespace cusim::test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kTiny = std::numeric_limits<float>::denorm_min();

template <class T>
std::vector<T> arguments(std::size_t count, T step) {
  std::vector<T> x(count);
  for (std::size_t i = 0; i < count; ++i) x[i] = (static_cast<T>(i) - T{31}) * step;
  return x;
}

/// Largest error of result `k` relative to what `exact` gives for each argument.
template <class T>
double worst_error(const std::vector<T>& x, const std::vector<T>& y, std::size_t k,
                   const std::function<double(T)>& exact) {
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double want = exact(x[i]);
    const double got = static_cast<double>(y[k * x.size() + i]);
    const double error = std::abs(got - want) / (1e-3 + std::abs(want));
    worst = std::isnan(error) ? kInf : std::max(worst, error);
  }
  return worst;
}

bool same_bits(float a, float b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

TEST_CASE("float functions agree with libm") {
  const std::vector<float> x = arguments<float>(64, 0.13F);
  const auto p = [](float v) { return static_cast<double>(std::abs(v) + 0.1F); };
  const std::vector<std::function<double(float)>> exact{
      [](float v) { return std::exp(double{v}); },
      [&](float v) { return std::log(p(v)); },
      [&](float v) { return std::pow(p(v), double{2.3F}); },
      [](float v) { return std::tanh(double{v}); },
      [](float v) { return std::sin(double{v}); },
      [](float v) { return std::cos(double{1e5F * v}); },
      [](float v) { return std::erf(double{v}); },
      [](float v) { return std::cbrt(double{v}); },
      [](float v) { return double{std::fmod(v, 0.7F)}; },
      [&](float v) { return std::log1p(p(v)); },
      [&](float v) { return std::sqrt(p(v)); },
      [&](float v) { return 1 / std::sqrt(p(v)); },
      [&](float v) { return 1 / p(v); },
      [](float v) { return double{v} / double{0.7F}; },
      [](float v) { return std::exp2(double{v}); },
      [](float v) { return std::exp(double{v}); },
      [&](float v) { return std::log(p(v)); },
      [&](float v) { return double{v} / p(v); },
      [](float v) { return std::rint(double{v}); },
      [](float v) { return std::floor(double{v}); },
      [](float v) { return std::ceil(double{v}); },
      [](float v) { return std::trunc(double{v}); },
      [](float v) { return std::round(double{v}); },
      [&](float v) { return std::copysign(p(v), double{v}); }};
  const std::vector<float> y = map<float>(kFloatMath, x, exact.size());
  for (std::size_t k = 0; k < exact.size(); ++k) {
    CAPTURE(k);
    CHECK(worst_error<float>(x, y, k, exact[k]) < 2e-6);
  }
}

TEST_CASE("double functions agree with libm") {
  const std::vector<double> x = arguments<double>(64, 0.37);
  const auto p = [](double v) { return std::abs(v) + 0.1; };
  const std::vector<std::function<double(double)>> exact{
      [](double v) { return std::exp(v); },
      [&](double v) { return std::log(p(v)); },
      [&](double v) { return std::pow(p(v), 2.3); },
      [&](double v) { return std::pow(0.999, p(v) * 1000); },
      [&](double v) { return std::sqrt(p(v)); },
      [&](double v) { return 1 / p(v); },
      [](double v) { return v / 3.0; },
      [](double v) { return std::cbrt(v); },
      [](double v) { return std::tanh(v); },
      [](double v) { return std::sin(v); },
      [&](double v) { return std::fma(v, v, p(v)); },
      [](double v) { return std::rint(v); },
      [](double v) { return std::fmod(v, 0.7); }};
  const std::vector<double> y = map<double>(kDoubleMath, x, exact.size());
  for (std::size_t k = 0; k < exact.size(); ++k) {
    CAPTURE(k);
    CHECK(worst_error<double>(x, y, k, exact[k]) < 1e-14);
  }
}

/// `operation` of three floats in one of the host's rounding modes; volatile, so that it happens
/// when the program runs.
float rounded(int mode, float a, float b, float c,
              float (*operation)(volatile float&, volatile float&, volatile float&)) {
  volatile float va = a;
  volatile float vb = b;
  volatile float vc = c;
  std::fesetround(mode);
  const volatile float result = operation(va, vb, vc);
  std::fesetround(FE_TONEAREST);
  return result;
}

TEST_CASE("add, multiply and fused multiply-add round in every direction") {
  std::vector<float> a{1, -1, 0.1F, 3e38F, -3e38F, kTiny, 1e-30F, kInf, 0, 16777216};
  std::vector<float> b{1e-10F, 1e-10F, 0.2F, 3e38F, -3e38F, 0.3F, 1e-30F, 1, -0.0F, 1.5F};
  std::vector<float> c{1, 1e-20F, -0.02F, -1, 1, kTiny, -kTiny, 1, 1e-45F, 3};
  for (std::uint64_t i = 0; i < 246; ++i) {
    const auto number = [&](std::uint64_t salt) {
      const double fraction = static_cast<double>(mixed(i * 4 + salt) >> 11) * 0x1p-52 - 1;
      return static_cast<float>(std::ldexp(fraction, static_cast<int>(mixed(i + salt) % 30) - 15));
    };
    a.push_back(number(1));
    b.push_back(number(2));
    c.push_back(number(3));
  }
  const Buffer<float> da(a);
  const Buffer<float> db(b);
  const Buffer<float> dc(c);
  const Buffer<float> dy(14 * a.size());
  const int n = static_cast<int>(a.size());
  REQUIRE(launch(kFloatRounding, dim3(2), dim3(128), 0, da.get(), db.get(), dc.get(), dy.get(),
                 n) == cudaSuccess);
  const std::vector<float> y = dy.read();

  const auto add = [](volatile float& x, volatile float& z, volatile float&) { return x + z; };
  const auto subtract = [](volatile float& x, volatile float& z, volatile float&) { return x - z; };
  const auto multiply = [](volatile float& x, volatile float& z, volatile float&) { return x * z; };
  const auto fused = [](volatile float& x, volatile float& z, volatile float& w) {
    return std::fma(x, z, w);
  };
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto expect = [&](int mode, auto operation) {
      return rounded(mode, a[i], b[i], c[i], operation);
    };
    const std::array<float, 14> want{
        expect(FE_TONEAREST, add),       expect(FE_TOWARDZERO, add),
        expect(FE_DOWNWARD, add),        expect(FE_UPWARD, add),
        expect(FE_DOWNWARD, subtract),   expect(FE_UPWARD, subtract),
        expect(FE_TOWARDZERO, multiply), expect(FE_DOWNWARD, multiply),
        expect(FE_UPWARD, multiply),     expect(FE_TONEAREST, fused),
        expect(FE_TOWARDZERO, fused),    expect(FE_DOWNWARD, fused),
        expect(FE_UPWARD, fused),        std::min(1.0F, std::max(0.0F, a[i]))};
    for (std::size_t k = 0; k < want.size(); ++k) {
      CAPTURE(k, a[i], b[i], c[i]);
      CHECK(y[k * a.size() + i] == want[k]);
    }
  }
}

TEST_CASE("minimum and maximum treat NaN and signed zeros as PTX says") {
  const std::vector<float> a{1, kNan, 2, kNan, 0.0F, -0.0F, -kInf};
  const std::vector<float> b{2, 3, kNan, kNan, -0.0F, 0.0F, kInf};
  const Buffer<float> da(a);
  const Buffer<float> db(b);
  const Buffer<float> dy(std::vector<float>(4 * a.size(), kNan));
  const int n = static_cast<int>(a.size());
  REQUIRE(launch(kMinMax, dim3(1), dim3(32), 0, da.get(), db.get(), dy.get(), n) == cudaSuccess);
  const std::vector<float> y = dy.read();
  const std::array<float, 7> smaller{1, 3, 2, kNan, -0.0F, -0.0F, -kInf};
  const std::array<float, 7> larger{2, 3, 2, kNan, 0.0F, 0.0F, kInf};
  for (std::size_t i = 0; i < a.size(); ++i) {
    CAPTURE(i);
    CHECK((same_bits(y[i], smaller[i]) || (std::isnan(y[i]) && std::isnan(smaller[i]))));
    CHECK((same_bits(y[7 + i], larger[i]) || (std::isnan(y[7 + i]) && std::isnan(larger[i]))));
    if (std::isnan(a[i]) || std::isnan(b[i])) {  // .NaN passes a NaN on
      CHECK(std::isnan(y[14 + i]));
      CHECK(std::isnan(y[21 + i]));
    }
  }
}

TEST_CASE("comparisons are ordered or unordered as their names say") {
  const std::vector<float> a{1, 2, 1, kNan, 1, kNan};
  const std::vector<float> b{1, 1, 2, 1, kNan, kNan};
  const Buffer<float> da(a);
  const Buffer<float> db(b);
  const Buffer<std::uint32_t> dy(a.size());
  const int n = static_cast<int>(a.size());
  REQUIRE(launch(kFloatComparison, dim3(1), dim3(32), 0, da.get(), db.get(), dy.get(), n) ==
          cudaSuccess);
  // eq 1, ne 2, lt 4, le 8, gt 16, ge 32, then equ 64 to geu 2048, num 4096, nan 8192
  const std::uint32_t equal = 1 | 8 | 32;
  const std::uint32_t greater = 2 | 16 | 32;
  const std::uint32_t less = 2 | 4 | 8;
  const std::uint32_t unordered = (63U << 6) | 8192;
  CHECK(dy.read() ==
        std::vector<std::uint32_t>{equal | equal << 6 | 4096, greater | greater << 6 | 4096,
                                   less | less << 6 | 4096, unordered, unordered, unordered});
}

TEST_CASE("half precision rounds to the nearest") {
  const std::vector<float> x{0, 1, -2.5F, 0.1F, 1.0009765F, 65504, 70000, 1e-7F, kInf};
  const std::vector<float> y = map<float>(kHalf, x, 4);
  const std::vector<float> half{
      0, 1, -2.5F, 0.0999755859375F, 1.0009765625F, 65504, kInf, 1.1920929e-7F, kInf};
  const std::vector<float> brain{0,   1, -2.5F, 0.10009765625F, 1, 65536, 70144, 1.0011717677e-7F,
                                 kInf};
  for (std::size_t i = 0; i < x.size(); ++i) {
    CAPTURE(i, x[i]);
    CHECK(y[i] == half[i]);
    CHECK(y[x.size() + i] == brain[i]);
    CHECK(y[2 * x.size() + i] == half[i]);
    CHECK(y[3 * x.size() + i] == -half[i]);
  }
}

}  // namespace
}  // namespace cusim::test
