#include "lockstep/parallel/shard_tree.h"

#include <bit>
#include <cmath>

#include "support/catch.h"

using namespace lockstep;

namespace {

/// Value of shard s at element i: of magnitudes that make the order of a float sum visible.
float value(int shard, std::int64_t i) {
  return std::ldexp(1.0F + 0.37F * static_cast<float>(shard + 1),
                    (shard * 7 + static_cast<int>(i)) % 23);
}

/// Sum over shards [first, first + count) by halves, count a power of two.
float tree(int first, int count, std::int64_t i) {
  return count == 1 ? value(first, i)
                    : tree(first, count / 2, i) + tree(first + count / 2, count / 2, i);
}

std::vector<float> sum(int shards, std::int64_t floats) {
  Context context{Device{}};
  ShardTree shard_tree(Device{}, shards, floats);
  Arena grads(Device{}, floats, "a test");
  for (int repeat = 0; repeat < 2; ++repeat) {  // nothing may be left over from the step before
    for (int shard = 0; shard < shards; ++shard) {
      for (std::int64_t i = 0; i < floats; ++i) grads.data()[i] = value(shard, i);
      shard_tree.add(context, shard, 0, 32, grads.data());
      shard_tree.add(context, shard, 32, floats - 32, grads.data() + 32);
    }
  }
  return {grads.data(), grads.data() + floats};
}

}  // namespace

TEST_CASE("shards of a power of two are added by the binary tree, bit for bit", "[parallel]") {
  for (const int shards : {1, 2, 4, 8, 16}) {
    const std::vector<float> result = sum(shards, 64);
    for (std::int64_t i = 0; i < 64; ++i) {
      CAPTURE(shards, i);
      CHECK(result[static_cast<std::size_t>(i)] == tree(0, shards, i));
    }
  }
}

TEST_CASE("any other number of shards is summed completely", "[parallel]") {
  for (const int shards : {3, 5, 6, 7, 11}) {
    const std::vector<float> result = sum(shards, 64);
    for (std::int64_t i = 0; i < 64; ++i) {
      double expected = 0;
      for (int shard = 0; shard < shards; ++shard) expected += static_cast<double>(value(shard, i));
      CAPTURE(shards, i);
      CHECK(static_cast<double>(result[static_cast<std::size_t>(i)]) ==
            Approx(expected).epsilon(1e-6));
    }
  }
}
