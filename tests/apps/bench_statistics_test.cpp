// Middle, spread and ratios of repeated measurements.
#include "apps/lockstep_bench/statistics.h"
#include "support/catch.h"

namespace lockstep::apps {

TEST_CASE("statistics: median, lowest and highest of any order", "[apps]") {
  const Spread odd = spread_of({5, 1, 3});
  CHECK(odd.median == 3);
  CHECK(odd.lowest == 1);
  CHECK(odd.highest == 5);
  CHECK(spread_of({4, 1, 10, 2}).median == 3);
  const Spread one = spread_of({7});
  CHECK(one.median == 7);
  CHECK(one.lowest == 7);
  CHECK(one.highest == 7);
}

TEST_CASE("statistics: ratios are taken round by round", "[apps]") {
  // The medians' ratio would be 3, the ratios' median is 2.
  const std::vector<double> quotients = ratios({2, 6, 9}, {1, 3, 2});
  CHECK(quotients == std::vector<double>{2, 2, 4.5});
  CHECK(spread_of(quotients).median == 2);
}

TEST_CASE("statistics: a spread as JSON", "[apps]") {
  CHECK(spread_json({2, 1, 3}).dump() == R"({"median":2.0,"lowest":1.0,"highest":3.0})");
}

}  // namespace lockstep::apps
