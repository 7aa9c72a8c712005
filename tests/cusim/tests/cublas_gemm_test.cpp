// The arithmetic of the simulated matrix products against plain loops in double precision.
#include <cmath>
#include <limits>
#include <vector>

#include "cublas/gemm.h"
#include "support/catch.h"

namespace cusim {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> values(Index count, int seed) {
  std::vector<float> result(static_cast<std::size_t>(count));
  unsigned state = static_cast<unsigned>(seed) * 7919U + 1;
  for (float& value : result) {
    state = state * 1664525U + 1013904223U;
    value = static_cast<float>(state >> 8) / static_cast<float>(1 << 23) - 1;
  }
  return result;
}

/// The largest error of multiply() on a shape, relative to the sum of magnitudes.
double worst_error(Index m, Index n, Index k, bool transpose_a, bool transpose_b, float alpha,
                   float beta) {
  const std::vector<float> a = values(m * k, 1);
  const std::vector<float> b = values(k * n, 2);
  const Index ldc = m + 3;
  std::vector<float> c = values(ldc * n, 3);
  const std::vector<float> before = c;
  const ConstMatrix left = transpose_a ? ConstMatrix{a.data(), k, 1} : ConstMatrix{a.data(), 1, m};
  const ConstMatrix right = transpose_b ? ConstMatrix{b.data(), n, 1} : ConstMatrix{b.data(), 1, k};
  multiply(m, n, k, alpha, left, right, beta, c.data(), ldc);

  double worst = 0;
  for (Index column = 0; column < n; ++column) {
    for (Index row = 0; row < ldc; ++row) {
      const auto place = static_cast<std::size_t>(column * ldc + row);
      if (row >= m) {
        REQUIRE(c[place] == before[place]);  // between the columns
        continue;
      }
      double sum = 0;
      double size = std::abs(double{beta} * before[place]) + 1e-30;
      for (Index p = 0; p < k; ++p) {
        const double term = double{left(row, p)} * right(p, column);
        sum += term;
        size += std::abs(alpha * term);
      }
      const double wanted = alpha * sum + double{beta} * before[place];
      worst = std::max(worst, std::abs(c[place] - wanted) / size);
    }
  }
  return worst;
}

TEST_CASE("products of all shapes and transpositions are near the exact ones") {
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      for (const Index m : {1, 7, 64, 65, 130}) {
        for (const Index n : {1, 3, 4, 10}) {
          for (const Index k : {1, 9, 256, 600}) {
            CAPTURE(transpose_a, transpose_b, m, n, k);
            CHECK(worst_error(m, n, k, transpose_a, transpose_b, 1, 0) < 2e-6);
          }
        }
      }
    }
  }
}

TEST_CASE("alpha scales the product and beta what was there") {
  CHECK(worst_error(20, 6, 300, false, true, -0.5F, 1) < 2e-6);
  CHECK(worst_error(20, 6, 300, true, false, 2, -3) < 2e-6);
}

TEST_CASE("beta 0 does not read the output, alpha 0 not the factors") {
  const std::vector<float> ones(4, 1.0F);
  std::vector<float> c(4, kNan);
  const ConstMatrix two{ones.data(), 1, 2};
  multiply(2, 2, 2, 1, two, two, 0, c.data(), 2);
  CHECK(c == std::vector<float>(4, 2.0F));
  multiply(2, 2, 2, 0, {nullptr, 1, 2}, {nullptr, 1, 2}, 0.5F, c.data(), 2);
  CHECK(c == std::vector<float>(4, 1.0F));
}

TEST_CASE("a NaN in a factor spoils its row alone") {
  std::vector<float> a(6, 1.0F);
  a[1] = kNan;
  const std::vector<float> b(6, 1.0F);
  std::vector<float> c(9);
  multiply(3, 3, 2, 1, {a.data(), 1, 3}, {b.data(), 1, 2}, 0, c.data(), 3);
  for (std::size_t i = 0; i < c.size(); ++i) CHECK(std::isnan(c[i]) == (i % 3 == 1));
}

TEST_CASE("TF32 keeps ten bits of mantissa, halves go away from zero") {
  const float ulp = std::ldexp(1.0F, -10);
  CHECK(round_to_tf32(1 + ulp) == 1 + ulp);
  CHECK(round_to_tf32(1 + 0.49F * ulp) == 1);
  CHECK(round_to_tf32(1 + 0.5F * ulp) == 1 + ulp);
  CHECK(round_to_tf32(-1 - 0.5F * ulp) == -1 - ulp);
  CHECK(round_to_tf32(2 - std::ldexp(1.0F, -23)) == 2);
  CHECK(std::isinf(round_to_tf32(std::numeric_limits<float>::infinity())));
  CHECK(std::isnan(round_to_tf32(kNan)));
  CHECK(round_to_tf32(0) == 0);
}

TEST_CASE("a product in TF32 rounds both factors and nothing else") {
  const float ulp = std::ldexp(1.0F, -10);
  const std::vector<float> a{1 + 0.25F * ulp, 1 + 0.75F * ulp};
  const std::vector<float> b{1, 1 + 0.25F * ulp};
  float c = 0;
  multiply(1, 1, 2, 1, {a.data(), 1, 1}, {b.data(), 1, 2}, 0, &c, 1, Precision::kTf32);
  CHECK(c == 1 + (1 + ulp));
}

}  // namespace
}  // namespace cusim
