#include <cmath>
#include <cstdlib>

#include <sys/wait.h>
#include <unistd.h>

#include "runtime_kernels.h"

using namespace cusim::testing;

TEST_CASE("cudaMalloc gives memory full of NaN") {
  float* x = nullptr;
  REQUIRE(cudaMalloc(reinterpret_cast<void**>(&x), 3 * sizeof(float)) == cudaSuccess);
  float host[3] = {};
  REQUIRE(cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost) == cudaSuccess);
  for (const float value : host) CHECK(std::isnan(value));
  CHECK(cudaFree(x) == cudaSuccess);
}

TEST_CASE("live bytes count what is not freed, per device") {
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  const std::size_t before = cusim_live_bytes(1);
  const std::size_t other = cusim_live_bytes(0);
  {
    const DeviceArray<float> x(std::vector<float>(100));
    CHECK(cusim_live_bytes(1) == before + 400);
    CHECK(cusim_live_bytes(0) == other);
    std::size_t free = 0;
    std::size_t total = 0;
    REQUIRE(cudaMemGetInfo(&free, &total) == cudaSuccess);
    CHECK(total - free == before + 400);
  }
  CHECK(cusim_live_bytes(1) == before);
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
}

TEST_CASE("more memory than the device has is refused") {
  void* x = nullptr;
  const std::size_t before = cusim_live_bytes(0);
  CHECK(code(cudaMalloc(&x, std::size_t{1} << 45)) == cudaErrorMemoryAllocation);
  CHECK(x == nullptr);
  CHECK(cusim_live_bytes(0) == before);
}

TEST_CASE("only the start of an allocation can be freed, and once") {
  char* x = nullptr;
  REQUIRE(cudaMalloc(reinterpret_cast<void**>(&x), 64) == cudaSuccess);
  CHECK(code(cudaFree(x + 4)) == cudaErrorInvalidValue);
  CHECK(cudaFree(x) == cudaSuccess);
  CHECK(code(cudaFree(x)) == cudaErrorInvalidValue);
  CHECK(cudaFree(nullptr) == cudaSuccess);
  int on_host = 0;
  CHECK(code(cudaFreeHost(&on_host)) == cudaErrorInvalidValue);
}

TEST_CASE("copies and memsets that leave their allocation are refused") {
  const DeviceArray<char> x(std::vector<char>(64));
  std::vector<char> host(65);
  CHECK(code(cudaMemcpy(x.data(), host.data(), 65, cudaMemcpyHostToDevice)) == 1);
  CHECK(code(cudaMemcpy(host.data(), x.data() + 1, 64, cudaMemcpyDeviceToHost)) == 1);
  CHECK(code(cudaMemset(x.data(), 0, 65)) == 1);
  CHECK(cudaMemset(x.data(), 7, 64) == cudaSuccess);
  CHECK(x.values() == std::vector<char>(64, 7));
}

TEST_CASE("a copy whose direction does not fit its pointers is refused") {
  const DeviceArray<int> x({1});
  int host = 0;
  CHECK(code(cudaMemcpy(x.data(), &host, 4, cudaMemcpyDeviceToHost)) == 1);
  CHECK(code(cudaMemcpy(&host, x.data(), 4, cudaMemcpyHostToDevice)) == 1);
  CHECK(code(cudaMemcpy(&host, x.data(), 4, cudaMemcpyHostToHost)) == 1);
  CHECK(cudaMemcpy(&host, x.data(), 4, cudaMemcpyDefault) == cudaSuccess);
  CHECK(host == 1);
}

TEST_CASE("pointers know where they live") {
  cudaPointerAttributes attributes{};
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  const DeviceArray<int> x({1});
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
  REQUIRE(cudaPointerGetAttributes(&attributes, x.data()) == cudaSuccess);
  CHECK(attributes.type == cudaMemoryTypeDevice);
  CHECK(attributes.device == 1);
  const PinnedArray<int> pinned({1});
  REQUIRE(cudaPointerGetAttributes(&attributes, pinned.data()) == cudaSuccess);
  CHECK(attributes.type == cudaMemoryTypeHost);
  int pageable = 0;
  REQUIRE(cudaPointerGetAttributes(&attributes, &pageable) == cudaSuccess);
  CHECK(attributes.type == cudaMemoryTypeUnregistered);
}

TEST_CASE("with CUSIM_TAG a host that dereferences a device pointer crashes") {
  const char* tag = std::getenv("CUSIM_TAG");
  const DeviceArray<int> x({1});
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const volatile int* pointer = x.data();
    _exit(*pointer == 1 ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  const bool read_it = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  CHECK(read_it == (tag == nullptr));
}

TEST_CASE("a kernel reads and writes mapped pinned memory") {
  void* host = nullptr;
  REQUIRE(cudaHostAlloc(&host, sizeof(float), cudaHostAllocMapped) == cudaSuccess);
  *static_cast<float*>(host) = 1;
  void* mapped = nullptr;
  REQUIRE(cudaHostGetDevicePointer(&mapped, host, 0) == cudaSuccess);
  REQUIRE(launch(add, 1, 1, nullptr, static_cast<float*>(mapped), 2.0f, 1) == cudaSuccess);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(*static_cast<float*>(host) == 3);
  CHECK(cudaFreeHost(host) == cudaSuccess);
  int pageable = 0;
  CHECK(code(cudaHostGetDevicePointer(&mapped, &pageable, 0)) == cudaErrorInvalidValue);
}
