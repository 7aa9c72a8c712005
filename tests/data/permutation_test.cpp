// The order of an epoch: a permutation, its own for every seed and epoch, uniform, and the same for
// ever.
#include "lockstep/data/permutation.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <vector>

#include "lockstep/core/error.h"

#include "support/catch.h"

namespace {

using namespace lockstep;
using Order = std::vector<std::int32_t>;

Order shuffled(std::uint64_t seed, std::uint32_t epoch, std::int64_t count) {
  Order order;
  shuffle_epoch(seed, epoch, count, order);
  return order;
}

/// Sum of (observed - expected)^2 / expected over `cells` equally likely outcomes.
double chi_square(const std::map<Order, int>& seen, int cells, int draws) {
  const double expected = static_cast<double>(draws) / cells;
  double sum = expected * (cells - static_cast<int>(seen.size()));
  for (const auto& [order, count] : seen) sum += (count - expected) * (count - expected) / expected;
  return sum;
}

}  // namespace

TEST_CASE("every number is there once") {
  for (const std::int64_t count : {0, 1, 2, 3, 100, 55000}) {
    Order order = shuffled(7, 3, count);
    REQUIRE(static_cast<std::int64_t>(order.size()) == count);
    std::sort(order.begin(), order.end());
    for (std::size_t i = 0; i < order.size(); ++i)
      REQUIRE(order[i] == static_cast<std::int32_t>(i));
  }
}

TEST_CASE("seed and epoch alone decide the order") {
  CHECK(shuffled(1, 0, 1000) == shuffled(1, 0, 1000));
  CHECK(shuffled(1, 0, 1000) != shuffled(1, 1, 1000));
  CHECK(shuffled(1, 0, 1000) != shuffled(2, 0, 1000));
  CHECK(shuffled(1, 0, 1000) != shuffled(1 + (std::uint64_t{1} << 32), 0, 1000));
  Order used = shuffled(9, 9, 3000);
  const auto* memory = used.data();
  shuffle_epoch(1, 0, 1000, used);
  CHECK(used == shuffled(1, 0, 1000));
  CHECK(used.data() == memory);
}

TEST_CASE("the order of a seed never changes") {
  // Computed by a separate program in Python.
  CHECK(shuffled(0, 0, 10) == Order{6, 5, 8, 1, 7, 0, 9, 2, 3, 4});
  CHECK(shuffled(12345678901234ULL, 7, 10) == Order{6, 1, 7, 5, 3, 9, 2, 0, 4, 8});
  const Order epoch = shuffled(1, 0, 55000);
  CHECK(Order(epoch.begin(), epoch.begin() + 8) ==
        Order{6951, 24211, 3588, 41258, 22290, 13531, 14713, 9661});
}

TEST_CASE("all orders are equally likely") {
  constexpr int kDraws = 24000;
  std::map<Order, int> over_epochs;
  std::map<Order, int> over_seeds;
  for (int i = 0; i < kDraws; ++i) {
    ++over_epochs[shuffled(1, static_cast<std::uint32_t>(i), 4)];
    ++over_seeds[shuffled(static_cast<std::uint64_t>(i), 1, 4)];
  }
  // 23 degrees of freedom: beyond 49.7 once in a thousand; the seeds are fixed, so this passes
  // always or never.
  CHECK(chi_square(over_epochs, 24, kDraws) < 49.7);
  CHECK(chi_square(over_seeds, 24, kDraws) < 49.7);
}

TEST_CASE("each place is equally likely for each number") {
  constexpr int kCount = 10;
  constexpr int kDraws = 20000;
  std::array<std::array<int, kCount>, kCount> seen{};
  for (std::uint32_t i = 0; i < kDraws; ++i) {
    const Order order = shuffled(3, i, kCount);
    for (std::size_t place = 0; place < kCount; ++place)
      ++seen[place][static_cast<std::size_t>(order[place])];
  }
  double sum = 0;
  for (const auto& row : seen) {
    for (const int count : row) sum += (count - 2000.0) * (count - 2000.0) / 2000.0;
  }
  // (10 - 1)^2 = 81 degrees of freedom: beyond 125.6 once in a thousand.
  CHECK(sum < 125.6);
}

TEST_CASE("a count that cannot be is refused") {
  CHECK_THROWS_AS(shuffled(0, 0, -1), UsageError);
  CHECK_THROWS_AS(shuffled(0, 0, std::int64_t{1} << 31), UsageError);
}
