#include "lockstep/kernels/reduce.h"

#include <algorithm>
#include <cmath>

#include "kernels/reduce_cases.h"
#include "kernels/samples.h"
#include "support/throws.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

double l2(Context& context, const float* factor, const float* x, std::int64_t count) {
  std::vector<double> scratch = scratch_for(count);
  double result = std::nan("");
  l2_term(context, factor, x, count, scratch.data(), &result);
  REQUIRE(scratch[0] == 0);
  return result;
}

/// The sum of squares: with the factor 2 each product is exact.
double squares(Context& context, const float* x, std::int64_t count) {
  const std::vector<float> twos(static_cast<std::size_t>(count), 2.0F);
  return l2(context, twos.data(), x, count);
}

std::uint64_t hash(const std::vector<float>& x) {
  Context context(Device{});
  const auto count = static_cast<std::int64_t>(x.size());
  std::vector<std::uint64_t> scratch(static_cast<std::size_t>(sum_scratch_doubles(count)));
  std::uint64_t result = 0;
  hash_floats(context, x.data(), count, scratch.data(), &result);
  return result;
}

}  // namespace

TEST_CASE("sums are right and sums of squares have the same bits on every instruction set",
          "[kernels]") {
  for (const std::int64_t count : kSumCounts) {
    const std::vector<float> x = random_values(count, 1, -3, 3);
    const std::vector<float> factor = random_values(count, 2, 0, 0.1F);
    Context baseline(Device{}, CpuSet::baseline);
    const double first = squares(baseline, x.data(), count);
    double plain_squares = 0;
    double plain_l2 = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      plain_squares += static_cast<double>(x[i]) * x[i];
      plain_l2 += static_cast<double>(factor[i]) * x[i] * x[i] / 2;
    }
    for_each_set([&](Context& context) {
      INFO("count " << count);
      const double sum = squares(context, x.data(), count);
      CHECK(sum == Approx(plain_squares).epsilon(1e-13));
      CHECK(sum == first);
      CHECK(l2(context, factor.data(), x.data(), count) == Approx(plain_l2).epsilon(1e-13));
    });
  }
}

TEST_CASE("the sum is the documented tree over chunks", "[kernels]") {
  for_each_set([](Context& context) {
    for (const std::int64_t chunks : {2, 3, 5, 6, 7}) {
      const std::vector<float> x = random_values(chunks * kSumChunk - 3, 4);
      const auto count = static_cast<std::int64_t>(x.size());
      std::vector<double> level;
      for (std::int64_t at = 0; at < count; at += kSumChunk) {
        level.push_back(squares(context, x.data() + at, std::min(kSumChunk, count - at)));
      }
      while (level.size() > 1) {
        std::vector<double> next;
        for (std::size_t i = 0; i < level.size(); i += 2) {
          next.push_back(i + 1 < level.size() ? level[i] + level[i + 1] : level[i]);
        }
        level = next;
      }
      REQUIRE(squares(context, x.data(), count) == level[0]);
    }
  });
}

TEST_CASE("a sum of squares does not overflow and shows what is not finite", "[kernels]") {
  for_each_set([](Context& context) {
    std::vector<float> x(100, 1e30F);
    CHECK(squares(context, x.data(), 100) == Approx(1e62));
    x[99] = kNan;
    CHECK(std::isnan(squares(context, x.data(), 100)));
    x[99] = -kInfinity;
    CHECK(std::isinf(squares(context, x.data(), 100)));
  });
}

TEST_CASE("add, copy and fill reach every element and no more", "[kernels]") {
  for_each_set([](Context& context) {
    for (const std::int64_t count : {0, 1, 7, 16, 31, 100}) {
      const std::vector<float> a = random_values(count + 1, 1);
      const std::vector<float> b = random_values(count + 1, 2);
      std::vector<float> dst = a;
      add_into(context, dst.data(), b.data(), count);
      const auto end = static_cast<std::size_t>(count);
      for (std::size_t i = 0; i < end; ++i) REQUIRE(dst[i] == a[i] + b[i]);
      REQUIRE(dst[end] == a[end]);
      copy_into(context, dst.data(), b.data(), count);
      for (std::size_t i = 0; i < end; ++i) REQUIRE(dst[i] == b[i]);
      REQUIRE(dst[end] == a[end]);
      fill_zero(context, dst.data(), count);
      for (std::size_t i = 0; i < end; ++i) REQUIRE(dst[i] == 0);
      REQUIRE(dst[end] == a[end]);
    }
  });
}

TEST_CASE("the sum over parts is the documented tree", "[kernels]") {
  for_each_set([](Context& context) {
    for (const int count : {1, 2, 3, 4, 5, 7, 8, 9, 16, 23}) {
      const std::int64_t floats = 37, stride = 48;
      std::vector<float> parts = random_values(count * stride, 6);
      std::vector<float> sum = not_written(stride);
      sum_tree(context, parts.data(), count, stride, floats, sum.data());
      for (std::int64_t i = 0; i < stride; ++i) {
        INFO(count << " parts, element " << i);
        const float found = sum[static_cast<std::size_t>(i)];
        if (i < floats) {
          REQUIRE(found == tree_of(parts, 0, count, stride, i));
        } else {
          REQUIRE(std::isnan(found));
        }
      }
      sum_tree(context, parts.data(), count, stride, floats, parts.data());
      for (std::size_t i = 0; i < static_cast<std::size_t>(floats); ++i)
        REQUIRE(parts[i] == sum[i]);
    }
  });
}

TEST_CASE("the hash is frozen and sees every bit", "[kernels]") {
  std::vector<float> x;
  for (int i = 0; i < 5000; ++i) x.push_back(static_cast<float>(i) * 0.25F);
  CHECK(hash({}) == 0xCBF29CE484222325);
  CHECK(hash({1.0F}) == 0x0630921305F624CE);
  CHECK(hash(x) == 0xC4FCB0D1EEF2FBBF);
  const std::uint64_t before = hash(x);
  for (const std::size_t at : {0U, 4095U, 4096U, 4999U}) {
    std::vector<float> other = x;
    other[at] = std::nextafter(other[at], 1e9F);
    CHECK(hash(other) != before);
  }
  CHECK(hash({0.0F}) != hash({-0.0F}));
  CHECK(hash({0.0F}) != hash({0.0F, 0.0F}));
  CHECK(hash({1.0F, 2.0F}) != hash({2.0F, 1.0F}));
}

TEST_CASE("sums refuse a negative count", "[kernels]") {
  Context context(Device{});
  float x = 0;
  double result = 0;
  std::uint64_t word = 0;
  CHECK(contains(message_of<ShapeError>([&] { l2_term(context, &x, &x, -1, &result, &result); }),
                 "l2_term: count is -1"));
  CHECK_THROWS_AS(add_into(context, &x, &x, -1), ShapeError);
  CHECK_THROWS_AS(copy_into(context, &x, &x, -1), ShapeError);
  CHECK_THROWS_AS(fill_zero(context, &x, -1), ShapeError);
  CHECK_THROWS_AS(hash_floats(context, &x, -1, &word, &word), ShapeError);
  CHECK_THROWS_AS(sum_tree(context, &x, 1, 1, -1, &x), ShapeError);
  CHECK(contains(message_of<ShapeError>([&] { sum_tree(context, &x, 0, 1, 1, &x); }),
                 "sum_tree: the sum is over 0 parts"));
}
