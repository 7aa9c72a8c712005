#include "runtime_kernels.h"

using namespace cusim::testing;

TEST_CASE("a copy from pinned memory reads when it executes") {
  const DeviceArray<int> x({0});
  const PinnedArray<int> host({1});
  const TestStream stream;
  Gate gate(stream);
  REQUIRE(cudaMemcpyAsync(x.data(), host.data(), 4, cudaMemcpyHostToDevice, stream) == 0);
  host[0] = 2;
  gate.open();
  CHECK(x.values() == std::vector<int>{2});
}

TEST_CASE("a copy from pageable memory has read when the call returns") {
  const DeviceArray<int> x({0});
  int host = 1;
  const TestStream stream;
  Gate gate(stream);
  cusim_reset_counters();
  REQUIRE(cudaMemcpyAsync(x.data(), &host, 4, cudaMemcpyHostToDevice, stream) == 0);
  CHECK(cusim_counter("pageable_copies") == 1);
  host = 2;
  gate.open();
  CHECK(x.values() == std::vector<int>{1});
}

TEST_CASE("a copy into pinned memory writes when it executes") {
  const DeviceArray<int> x({5});
  const PinnedArray<int> host({0});
  const TestStream stream;
  Gate gate(stream);
  REQUIRE(cudaMemcpyAsync(host.data(), x.data(), 4, cudaMemcpyDeviceToHost, stream) == 0);
  CHECK(host[0] == 0);
  gate.open();
  REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(host[0] == 5);
}

TEST_CASE("a copy into pageable memory is waited for") {
  const DeviceArray<int> x({5});
  const TestStream stream;
  int host = 0;
  REQUIRE(cudaMemcpyAsync(&host, x.data(), 4, cudaMemcpyDeviceToHost, stream) == cudaSuccess);
  CHECK(host == 5);
}

TEST_CASE("copies between devices move the bytes and count them") {
  const DeviceArray<int> here({1, 2, 3});
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  const DeviceArray<int> there({0, 0, 0});
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
  cusim_reset_counters();
  REQUIRE(cudaMemcpy(there.data(), here.data(), 12, cudaMemcpyDeviceToDevice) == cudaSuccess);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(cusim_counter("d2d_bytes") == 12);
  CHECK(cusim_counter("memcpys") == 1);
  CHECK(there.values() == std::vector<int>{1, 2, 3});
}

TEST_CASE("a variable has one copy on each device") {
  const DeviceArray<float> x({0.0f});
  const float five = 5;
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  const DeviceArray<float> y({0.0f});
  REQUIRE(cudaMemcpyToSymbol(&bias, &five, sizeof five, 0, cudaMemcpyHostToDevice) == 0);
  REQUIRE(launch(add_variable, 1, 1, nullptr, y.data()) == cudaSuccess);
  CHECK(y.values() == std::vector<float>{5});
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
  REQUIRE(launch(add_variable, 1, 1, nullptr, x.data()) == cudaSuccess);
  CHECK(x.values() == std::vector<float>{2});
  float value = 0;
  REQUIRE(cudaMemcpyFromSymbol(&value, &bias, sizeof value, 0, cudaMemcpyDeviceToHost) == 0);
  CHECK(value == 2);
}

TEST_CASE("variables have an address and a size") {
  void* address = nullptr;
  std::size_t bytes = 0;
  REQUIRE(cudaGetSymbolAddress(&address, &bias) == cudaSuccess);
  REQUIRE(cudaGetSymbolSize(&bytes, &bias) == cudaSuccess);
  CHECK(bytes == sizeof(float));
  float value = 0;
  REQUIRE(cudaMemcpy(&value, address, sizeof value, cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(value == 2);
  CHECK(code(cudaMemcpyToSymbol(&bias, &value, 4, 1, cudaMemcpyHostToDevice)) == 1);
  CHECK(code(cudaGetSymbolAddress(&address, &value)) == cudaErrorInvalidSymbol);
  CHECK(code(cudaFree(address)) == cudaErrorInvalidValue);
}
