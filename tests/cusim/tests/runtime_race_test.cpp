// Programs with and without a race, for builds with ThreadSanitizer: ctest looks whether it reports
// one. Each case is run alone.
#include "runtime_kernels.h"

using namespace cusim::testing;

namespace {

/// Adds on two streams, one after the other if `ordered`.
void add_on_two_streams(bool ordered) {
  const DeviceArray<float> x({0.0f});
  const TestStream first;
  const TestStream second;
  const TestEvent event;
  REQUIRE(launch(add, 1, 1, first, x.data(), 1.0f, 1) == cudaSuccess);
  REQUIRE(cudaEventRecord(event, first) == cudaSuccess);
  if (ordered) REQUIRE(cudaStreamWaitEvent(second, event, 0) == cudaSuccess);
  REQUIRE(launch(add, 1, 1, second, x.data(), 1.0f, 1) == cudaSuccess);
  CHECK(x.values() == std::vector<float>{2});
}

/// The host changes a pinned buffer that a copy reads, after waiting for it if `waits`.
void change_while_copying(bool waits) {
  const DeviceArray<int> x({0});
  const PinnedArray<int> host({1});
  const TestStream stream;
  REQUIRE(cudaMemcpyAsync(x.data(), host.data(), 4, cudaMemcpyHostToDevice, stream) == 0);
  if (waits) REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
  host[0] = 2;
  REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
}

void read_neighbours(bool barrier) {
  const DeviceArray<int> out(std::vector<int>(64));
  REQUIRE(launch(read_neighbour, 1, 64, nullptr, out.data(), static_cast<int>(barrier)) == 0);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
}

}  // namespace

TEST_CASE("streams ordered", "[.]") {
  add_on_two_streams(true);
}
TEST_CASE("streams not ordered", "[.]") {
  add_on_two_streams(false);
}
TEST_CASE("copy waited for", "[.]") {
  change_while_copying(true);
}
TEST_CASE("copy not waited for", "[.]") {
  change_while_copying(false);
}
TEST_CASE("neighbours after a barrier", "[.]") {
  read_neighbours(true);
}
TEST_CASE("neighbours without a barrier", "[.]") {
  read_neighbours(false);
}
