// Warp collectives and barriers of translated kernels.
#include <algorithm>
#include <functional>
#include <numeric>

#include "tests/ptx_support.h"

namespace cusim::test {
namespace {

std::vector<int> lanes() {
  std::vector<int> x(32);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<int>(mixed(i) % 201) - 100;
  return x;
}

/// The result of 32 lanes that starts at `k` * 32.
template <class T>
std::vector<T> result(const std::vector<T>& y, std::size_t k) {
  return {y.begin() + static_cast<std::ptrdiff_t>(32 * k),
          y.begin() + static_cast<std::ptrdiff_t>(32 * k + 32)};
}

/// What each lane gets from lane source(lane); lanes outside of `width` lanes keep their own.
template <class Source>
std::vector<int> moved(const std::vector<int>& x, int width, Source source) {
  std::vector<int> y(x);
  for (int lane = 0; lane < 32; ++lane) {
    const int from = source(lane);
    const int begin = lane / width * width;
    if (from >= begin && from < begin + width)
      y[static_cast<std::size_t>(lane)] = x[static_cast<std::size_t>(from)];
  }
  return y;
}

TEST_CASE("shuffles move values between lanes") {
  const std::vector<int> x = lanes();
  const Buffer<int> in(x);
  const Buffer<int> out(8 * 32);
  REQUIRE(launch(kShuffles, dim3(1), dim3(32), 0, in.get(), out.get()) == cudaSuccess);
  const std::vector<int> y = out.read();
  CHECK(result(y, 0) == moved(x, 32, [](int lane) { return lane - 3; }));
  CHECK(result(y, 1) == moved(x, 32, [](int lane) { return lane + 5; }));
  CHECK(result(y, 2) == moved(x, 32, [](int lane) { return lane ^ 9; }));
  CHECK(result(y, 3) == moved(x, 32, [](int) { return 7; }));
  CHECK(result(y, 4) == moved(x, 8, [](int lane) { return lane - 2; }));
  CHECK(result(y, 5) == moved(x, 16, [](int lane) { return lane + 3; }));
  // A butterfly may reach into lower parts of the warp, not into higher ones.
  std::vector<int> butterfly(x);
  for (std::size_t lane = 0; lane < 32; ++lane) {
    if ((lane ^ 12) <= (lane | 7)) butterfly[lane] = x[lane ^ 12];
  }
  CHECK(result(y, 6) == butterfly);
  CHECK(result(y, 7) == moved(x, 4, [](int lane) { return lane / 4 * 4 + 3; }));
}

TEST_CASE("votes and matches see every lane of their mask") {
  const std::vector<int> x = lanes();
  const Buffer<int> in(x);
  const Buffer<unsigned> out(8 * 32);
  REQUIRE(launch(kVotes, dim3(1), dim3(32), 0, in.get(), out.get()) == cudaSuccess);
  const std::vector<unsigned> y = out.read();
  unsigned positive = 0;
  bool upper_has_third = false;
  for (std::size_t lane = 0; lane < 32; ++lane) {
    positive |= static_cast<unsigned>(x[lane] > 0) << lane;
    if (lane >= 16) upper_has_third |= x[lane] == x[3];
  }
  REQUIRE_FALSE(upper_has_third);
  for (std::size_t lane = 0; lane < 32; ++lane) {
    CAPTURE(lane);
    unsigned same = 0;
    unsigned group = 0;
    for (std::size_t other = 0; other < 32; ++other) {
      same |= static_cast<unsigned>((x[other] & 3) == (x[lane] & 3)) << other;
      group |= static_cast<unsigned>(other / 5 == lane / 5) << other;
    }
    const unsigned half = lane < 16 ? 0x0000FFFF : 0xFFFF0000;
    CHECK(y[lane] == positive);
    CHECK(y[32 + lane] == (lane < 16 ? 1 : 0));
    CHECK(y[64 + lane] == 1);
    CHECK(y[96 + lane] == same);
    CHECK(y[128 + lane] == group);
    CHECK(y[160 + lane] == half + 1);
    CHECK(y[192 + lane] == 0);
    CHECK(y[224 + lane] == 1);
  }
}

TEST_CASE("a block adds up its part") {
  std::vector<float> x(5000);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(mixed(i) % 1000);
  const Buffer<float> in(x);
  const Buffer<float> out(3);
  const int n = static_cast<int>(x.size());
  REQUIRE(launch(kBlockSum, dim3(3), dim3(256), 0, in.get(), out.get(), n) == cudaSuccess);
  std::vector<float> want(3);  // whole numbers: exact in any order
  for (std::size_t i = 0; i < x.size(); ++i) want[i / 256 % 3] += x[i];
  CHECK(out.read() == want);
}

TEST_CASE("barriers count the threads that are still there") {
  std::vector<int> x(64, -1);
  for (const std::size_t i : {0U, 5U, 40U, 62U, 63U}) x[i] = 1;
  const Buffer<int> in(x);
  const Buffer<int> out(3);
  REQUIRE(launch(kBlockVotes, dim3(1), dim3(64), 0, in.get(), out.get()) == cudaSuccess);
  CHECK(out.read() == std::vector<int>{4, 0, 1});
}

TEST_CASE("a warp reduces integers in one instruction") {
  int major = 0;
  REQUIRE(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0) == cudaSuccess);
  const std::vector<int> x = lanes();
  const Buffer<int> in(x);
  const Buffer<int> out(std::vector<int>(6 * 32, -7));
  REQUIRE(launch(kReductions, dim3(1), dim3(32), 0, in.get(), out.get()) == cudaSuccess);
  const std::vector<int> y = out.read();
  if (major < 8) {  // sm_75 has no redux: the kernel is empty there
    CHECK(y == std::vector<int>(6 * 32, -7));
    return;
  }
  for (std::size_t lane = 0; lane < 32; ++lane) {
    CAPTURE(lane);
    const auto begin = x.begin() + (lane < 16 ? 0 : 16);
    const auto end = begin + 16;
    unsigned all = ~0U;
    unsigned any = 0;
    for (const int v : x) {
      all &= static_cast<unsigned>(v) | 0x100;
      any |= static_cast<unsigned>(v);
    }
    const auto larger = [](int a, int b) { return unsigned(a) < unsigned(b); };
    CHECK(y[lane] == std::accumulate(x.begin(), x.end(), 0));
    CHECK(y[32 + lane] == *std::min_element(begin, end));
    CHECK(y[64 + lane] == *std::max_element(begin, end, larger));
    CHECK(y[96 + lane] == static_cast<int>(all));
    CHECK(y[128 + lane] == static_cast<int>(any));
    CHECK(y[160 + lane] == std::accumulate(begin, end, 0, std::bit_xor<>()));
  }
}

}  // namespace
}  // namespace cusim::test
