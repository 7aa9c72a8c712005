// Conversions of translated kernels between all number types.
#include <cfenv>
#include <cstring>
#include <limits>

#include "tests/ptx_support.h"

namespace cusim::test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

/// `value` as an I: the nearest number in range, 0 for NaN.
template <class I>
std::int64_t clamped(double value) {
  if (std::isnan(value)) return 0;
  if (value <= static_cast<double>(std::numeric_limits<I>::min()))
    return static_cast<std::int64_t>(std::numeric_limits<I>::min());
  if (value >= static_cast<double>(std::numeric_limits<I>::max()))
    return static_cast<std::int64_t>(std::numeric_limits<I>::max());
  return static_cast<std::int64_t>(static_cast<I>(value));
}

template <class I, class F>
std::int64_t bits_of(F value) {
  I bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

TEST_CASE("floats become integers in every rounding, limited to their range") {
  const std::vector<double> x{0,     0.5,   1.5,  -0.5,  -1.5, 2.4999,      -2.5,
                              99.75, -100,  1e10, -1e10, 1e19, -1e19,       1e300,
                              kInf,  -kInf, kNan, 4e9,   -1,   2147483647.5};
  const std::size_t n = x.size();
  const std::vector<std::int64_t> y = map<std::int64_t>(kConversion, x, 20);
  for (std::size_t i = 0; i < n; ++i) {
    const double v = x[i];
    const auto single = static_cast<float>(v);
    const double f = single;
    const std::array<std::int64_t, 14> want{
        clamped<std::int32_t>(std::nearbyint(f)),  clamped<std::int32_t>(std::trunc(f)),
        clamped<std::int32_t>(std::floor(f)),      clamped<std::int32_t>(std::ceil(f)),
        clamped<std::int32_t>(std::nearbyint(v)),  clamped<std::int32_t>(std::trunc(v)),
        clamped<std::int32_t>(std::floor(v)),      clamped<std::int32_t>(std::ceil(v)),
        clamped<std::uint32_t>(std::nearbyint(f)), clamped<std::uint32_t>(std::trunc(v)),
        clamped<std::int64_t>(std::nearbyint(v)),  clamped<std::int64_t>(std::floor(v)),
        clamped<std::int64_t>(std::trunc(f)),      clamped<std::uint64_t>(std::ceil(v))};
    for (std::size_t k = 0; k < want.size(); ++k) {
      CAPTURE(v, k);
      CHECK(y[k * n + i] == want[k]);
    }
    CHECK(y[18 * n + i] == bits_of<std::int32_t>(single));
    CHECK(y[19 * n + i] == bits_of<std::int64_t>(v));
    if (std::abs(v) > 100) continue;  // C++ does not define conversions that do not fit
    CHECK(y[14 * n + i] == static_cast<std::int8_t>(v));
    if (v >= 0) CHECK(y[15 * n + i] == static_cast<std::uint8_t>(v));
    CHECK(y[16 * n + i] == static_cast<std::int16_t>(v));
    if (v >= 0) CHECK(y[17 * n + i] == static_cast<std::uint16_t>(v));
  }
}

/// A number as a float in one of the host's rounding modes.
template <class T>
float rounded(int mode, T value) {
  const volatile T read = value;
  std::fesetround(mode);
  const volatile float result = static_cast<float>(read);
  std::fesetround(FE_TONEAREST);
  return result;
}

TEST_CASE("numbers become floats in every rounding") {
  std::vector<double> x{0, -0.0, 0.1, -0.1, 1e300, -1e300, 1e-300, -1e-300, kInf, -kInf, 16777217};
  for (std::uint64_t i = 0; i < 50; ++i) {
    double number;
    const std::uint64_t bits = mixed(i) & ~(std::uint64_t{1} << 62);
    std::memcpy(&number, &bits, sizeof number);
    x.push_back(number);
  }
  const std::size_t n = x.size();
  const std::vector<float> y = map<float>(kNarrowing, x, 12);
  const std::array<int, 4> modes{FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t whole = bits_of<std::int64_t>(x[i]);
    const auto word = static_cast<std::int32_t>(whole >> 32);
    for (std::size_t m = 0; m < modes.size(); ++m) {
      CAPTURE(x[i], m);
      CHECK(y[m * n + i] == rounded(modes[m], x[i]));
      CHECK(y[(4 + m) * n + i] == rounded(modes[m], word));
      CHECK(y[(8 + m) * n + i] == rounded(modes[m], whole));
    }
  }
}

}  // namespace
}  // namespace cusim::test
