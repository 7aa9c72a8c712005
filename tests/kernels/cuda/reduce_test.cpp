#include "lockstep/kernels/reduce.h"

#include <algorithm>

#include "kernels/reduce_cases.h"
#include "support/cuda_device.h"

using namespace lockstep;
using namespace lockstep::test;

TEST_CASE("the L2 term on CUDA is right, twice the same, and leaves its ticket at 0") {
  Gpu gpu;
  for (const std::int64_t count : kSumCounts) {
    const std::vector<float> x = random_values(count, 1, -3, 3);
    const std::vector<float> factor = random_values(count, 2, 0, 0.1F);
    double expected = 0;
    for (std::size_t i = 0; i < x.size(); ++i)
      expected += static_cast<double>(factor[i]) * x[i] * x[i] / 2;
    const DeviceArray<float> values(gpu.context, x), factors(gpu.context, factor);
    const DeviceArray<double> scratch(gpu.context, scratch_for(count));
    const auto term = [&] {
      const DeviceValue<double> result(gpu.context, std::nan(""));
      l2_term(gpu.context, factors.data(), values.data(), count, scratch.data(), result.data());
      return result.download();
    };
    INFO("count " << count);
    const double first = term();
    CHECK(first == Approx(expected).epsilon(1e-13));
    CHECK(term() == first);
    CHECK(scratch.download()[0] == 0);
  }
}

TEST_CASE("the L2 term on CUDA is the documented tree over chunks") {
  Gpu gpu;
  for (const std::int64_t chunks : {2, 3, 5, 6, 7}) {
    const std::vector<float> x = random_values(chunks * kSumChunk - 3, 4);
    const auto count = static_cast<std::int64_t>(x.size());
    const DeviceArray<float> values(gpu.context, x),
        factors(gpu.context, random_values(count, 5, 0, 1));
    const DeviceArray<double> scratch(gpu.context, scratch_for(count));
    const auto term = [&](std::int64_t begin, std::int64_t length) {
      const DeviceValue<double> result(gpu.context, std::nan(""));
      l2_term(gpu.context, factors.data() + begin, values.data() + begin, length, scratch.data(),
              result.data());
      return result.download();
    };
    std::vector<double> level;
    for (std::int64_t at = 0; at < count; at += kSumChunk)
      level.push_back(term(at, std::min(kSumChunk, count - at)));
    while (level.size() > 1) {
      std::vector<double> next;
      for (std::size_t i = 0; i < level.size(); i += 2) {
        next.push_back(i + 1 < level.size() ? level[i] + level[i + 1] : level[i]);
      }
      level = next;
    }
    REQUIRE(term(0, count) == level[0]);
  }
}

TEST_CASE("add, copy and fill on CUDA reach every element and no more") {
  Gpu gpu;
  for (const std::int64_t count : {0, 1, 7, 16, 31, 100, 5001}) {
    const std::vector<float> a = random_values(count + 1, 1);
    const std::vector<float> b = random_values(count + 1, 2);
    const DeviceArray<float> dst(gpu.context, a), src(gpu.context, b);
    std::vector<float> expected = a;
    const auto end = static_cast<std::size_t>(count);
    for (std::size_t i = 0; i < end; ++i) expected[i] = a[i] + b[i];
    add_into(gpu.context, dst.data(), src.data(), count);
    REQUIRE(dst.download() == expected);
    std::copy_n(b.begin(), end, expected.begin());
    copy_into(gpu.context, dst.data(), src.data(), count);
    REQUIRE(dst.download() == expected);
    std::fill_n(expected.begin(), end, 0.0F);
    fill_zero(gpu.context, dst.data(), count);
    REQUIRE(dst.download() == expected);
  }
}

TEST_CASE("the sum over parts on CUDA is the documented tree, memory aligned or not") {
  Gpu gpu;
  for (const int count : {1, 2, 3, 4, 5, 7, 8, 9, 16, 23, 40}) {
    for (const std::int64_t stride : {48, 47}) {
      const std::int64_t floats = 37;
      const std::vector<float> parts = random_values(count * stride, 6);
      std::vector<float> expected = not_written(stride);
      for (std::int64_t i = 0; i < floats; ++i)
        expected[static_cast<std::size_t>(i)] = tree_of(parts, 0, count, stride, i);
      const DeviceArray<float> in(gpu.context, parts), out(gpu.context, stride);
      INFO(count << " parts");
      sum_tree(gpu.context, in.data(), count, stride, floats, out.data());
      REQUIRE(same_bits(out.download(), expected));
      sum_tree(gpu.context, in.data(), count, stride, floats, in.data());
      const std::vector<float> in_place = in.download();
      REQUIRE(std::equal(in_place.begin(), in_place.begin() + floats, expected.begin()));
    }
  }
}

TEST_CASE("the hash on CUDA is the CPU's") {
  Gpu gpu;
  Context cpu(Device{});
  for (const std::int64_t count : kSumCounts) {
    std::vector<float> x = random_values(count, 7);
    if (count > 1) x[1] = kNan;
    std::vector<std::uint64_t> words(static_cast<std::size_t>(sum_scratch_doubles(count)));
    std::uint64_t expected = 0;
    hash_floats(cpu, x.data(), count, words.data(), &expected);
    const DeviceArray<float> values(gpu.context, x);
    const DeviceArray<std::uint64_t> scratch(gpu.context, std::vector<std::uint64_t>(words.size()));
    for (int run = 0; run < 2; ++run) {
      const DeviceValue<std::uint64_t> result(gpu.context, 0);
      hash_floats(gpu.context, values.data(), count, scratch.data(), result.data());
      INFO("count " << count);
      CHECK(result.download() == expected);
    }
    CHECK(scratch.download()[0] == 0);
  }
}
