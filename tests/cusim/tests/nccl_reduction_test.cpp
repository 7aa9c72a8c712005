// The arithmetic of the simulated collectives.
#include <cstdint>
#include <cstring>

#include "nccl/reduction.h"
#include "tests/library_support.h"

namespace cusim {
namespace {

template <class T>
std::vector<T> reduced(ncclDataType_t type, ncclRedOp_t operation,
                       const std::vector<std::vector<T>>& inputs) {
  std::vector<const std::byte*> sources;
  for (const auto& input : inputs) {
    sources.push_back(reinterpret_cast<const std::byte*>(input.data()));
  }
  std::vector<T> result(inputs.front().size());
  reduce_in_pieces(type, operation, sources, result.size(),
                   reinterpret_cast<std::byte*>(result.data()));
  return result;
}

TEST_CASE("operations on whole numbers and floats") {
  const std::vector<std::vector<int>> ints{{1, -2, 3}, {4, 5, -6}};
  CHECK(reduced(ncclInt32, ncclSum, ints) == std::vector<int>{5, 3, -3});
  CHECK(reduced(ncclInt32, ncclProd, ints) == std::vector<int>{4, -10, -18});
  CHECK(reduced(ncclInt32, ncclMax, ints) == std::vector<int>{4, 5, 3});
  CHECK(reduced(ncclInt32, ncclMin, ints) == std::vector<int>{1, -2, -6});
  CHECK(reduced(ncclInt32, ncclAvg, ints) == std::vector<int>{2, 1, -1});
  CHECK(reduced<double>(ncclFloat64, ncclAvg, {{1, 2}, {2, 4}}) == std::vector<double>{1.5, 3});
  CHECK(reduced<std::uint8_t>(ncclUint8, ncclSum, {{200}, {100}}) == std::vector<std::uint8_t>{44});
  CHECK(reduced<std::uint64_t>(ncclUint64, ncclMax, {{1}, {~std::uint64_t{0}}}) ==
        std::vector<std::uint64_t>{~std::uint64_t{0}});
}

TEST_CASE("each piece of a sum starts at the rank after its own and goes around the ring") {
  // 1 is lost when it is added to 2^24 alone, and counts when it meets another 1 first.
  const float big = 16777216;
  const std::vector<std::vector<float>> inputs{{big, big, big}, {1, 1, 1}, {1, 1, 1}};
  CHECK(reduced(ncclFloat32, ncclSum, inputs) ==
        std::vector<float>{1 + 1 + big, (1 + big) + 1, (big + 1) + 1});
  CHECK(1 + 1 + big != (big + 1) + 1);
}

TEST_CASE("an average scales before it adds") {
  const float third = 1.0F / 3;
  CHECK(reduced<float>(ncclFloat32, ncclAvg, {{7}, {7}, {7}}) ==
        std::vector<float>{7 * third + 7 * third + 7 * third});
}

TEST_CASE("which types and operations are known") {
  CHECK(element_bytes(ncclBfloat16) == 2);
  CHECK(element_bytes(ncclFloat64) == 8);
  CHECK(can_reduce(ncclFloat32, ncclSum));
  CHECK_FALSE(can_reduce(ncclFloat16, ncclSum));
  CHECK_FALSE(can_reduce(ncclFloat32, ncclNumOps));
}

}  // namespace
}  // namespace cusim
