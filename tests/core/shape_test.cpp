#include "lockstep/core/shape.h"

#include "lockstep/core/buffer.h"
#include "lockstep/core/error.h"
#include "lockstep/core/tensor.h"

#include "support/catch.h"
#include "support/throws.h"

using namespace lockstep;

TEST_CASE("a shape knows its extents and their product", "[core]") {
  const Shape shape{128, 1, 28, 28};
  CHECK(shape.rank() == 4);
  CHECK(shape.count() == 128 * 28 * 28);
  CHECK(shape.to_string() == "(128, 1, 28, 28)");
  CHECK(shape.without_first() == Shape{1, 28, 28});
  CHECK(shape.without_first().with_first(3) == Shape{3, 1, 28, 28});
  CHECK(Shape{}.count() == 1);
  CHECK(Shape{0, 5}.count() == 0);
}

TEST_CASE("a shape that cannot be is refused", "[core]") {
  CHECK_THROWS_AS(Shape({1, 2, 3, 4, 5}), ShapeError);
  CHECK_THROWS_AS(Shape({2, -1}), ShapeError);
  CHECK_THROWS_AS(Shape({std::int64_t{1} << 32, std::int64_t{1} << 32}), ShapeError);
  CHECK_THROWS_AS((Shape{2, 3}[2]), ShapeError);
  CHECK_THROWS_AS(Shape{}.without_first(), ShapeError);
  CHECK_THROWS_AS(Shape({1, 2, 3, 4}).with_first(1), ShapeError);
}

TEST_CASE("a tensor checks the number of its values", "[core]") {
  CHECK(Tensor(Shape{2, 2}).values() == std::vector<float>(4, 0.0F));
  CHECK_THROWS_AS(Tensor(Shape{2, 2}, {1, 2, 3}), ShapeError);
}

TEST_CASE("arena places are aligned and buffers are zeroed", "[core]") {
  ArenaLayout layout;
  const Place first = layout.add(10);
  const Place second = layout.add(16);
  CHECK(first.offset == 0);
  CHECK(second.offset == 16);
  CHECK(layout.size() == 32);
  const Arena arena(Device{}, layout.size(), "a test");
  CHECK(reinterpret_cast<std::uintptr_t>(arena.at(second)) % kAlignment == 0);
  for (std::int64_t i = 0; i < arena.size(); ++i) REQUIRE(arena.data()[i] == 0.0F);
}

TEST_CASE("a buffer that does not fit names its purpose", "[core]") {
  const std::string text = test::message_of<DeviceError>(
      [] { (void)Buffer(Device{}, std::size_t{1} << 60, "the activations"); });
  CHECK(test::contains(text, "the activations"));
  CHECK(test::contains(text, "cpu:0"));
}
