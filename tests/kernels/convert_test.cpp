#include "lockstep/kernels/convert.h"

#include "kernels/samples.h"
#include "support/throws.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

std::size_t index_in(Layout layout, std::int64_t features, std::int64_t n, std::int64_t e) {
  return layout == Layout::n16 ? n16_index(features, n, e)
                               : static_cast<std::size_t>(n * features + e);
}

}  // namespace

TEST_CASE("convert_layout keeps every element and fills the rest with zeros", "[kernels]") {
  Context context(Device{});
  const Layout layouts[] = {Layout::canonical, Layout::n16};
  for (const Layout from : layouts) {
    for (const Layout to : layouts) {
      for (const std::int64_t in : {0, 1, 16, 17, 32}) {
        for (const std::int64_t out : {0, 1, 5, 16, 32, 48}) {
          if (from == Layout::n16 && in % 16 != 0) continue;
          if (to == Layout::n16 && out % 16 != 0) continue;
          const std::int64_t features = 2 * 3 * 7;
          const std::vector<float> x = random_values(in * features, 1);
          std::vector<float> y = not_written(out * features);
          convert_layout(context, {x.data(), {in, 2, 3, 7}, from}, {y.data(), {out, 2, 3, 7}, to});
          for (std::int64_t n = 0; n < out; ++n) {
            for (std::int64_t e = 0; e < features; ++e) {
              const float want = n < in ? x[index_in(from, features, n, e)] : 0.0F;
              INFO(name_of(from) << " " << in << " to " << name_of(to) << " " << out << ": " << n
                                 << ", " << e);
              REQUIRE(y[index_in(to, features, n, e)] == want);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("convert_layout refuses shapes that do not fit", "[kernels]") {
  Context context(Device{});
  std::vector<float> x(64), y(64);
  const auto call = [&](const Shape& in, Layout from, const Shape& out, Layout to) {
    convert_layout(context, {x.data(), in, from}, {y.data(), out, to});
  };
  CHECK(contains(message_of<ShapeError>([&] {
                   call({16, 2}, Layout::canonical, {16, 3}, Layout::n16);
                 }),
                 "convert_layout: x is (16, 2) and y is (16, 3)"));
  CHECK_THROWS_AS(call({16, 4}, Layout::canonical, {16, 2, 2}, Layout::n16), ShapeError);
  CHECK_THROWS_AS(call({}, Layout::canonical, {}, Layout::canonical), ShapeError);
  CHECK_THROWS_AS(call({15, 2}, Layout::n16, {16, 2}, Layout::canonical), ShapeError);
  CHECK_THROWS_AS(call({15, 2}, Layout::canonical, {15, 2}, Layout::n16), ShapeError);
}
