// Run without a driver, with one that is too old, and without devices: CUSIM_TEST_EXPECT is the
// error that every call must give.
#include <cstdlib>

#include "runtime_kernels.h"

using namespace cusim::testing;

TEST_CASE("without a usable driver or device every call says so") {
  const char* text = std::getenv("CUSIM_TEST_EXPECT");
  REQUIRE(text != nullptr);
  const int expected = std::atoi(text);
  int count = -7;
  CHECK(cudaGetDeviceCount(&count) == expected);
  CHECK(count == -7);
  CHECK(cudaGetLastError() == expected);
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK(code(cudaSetDevice(0)) == expected);
  void* x = nullptr;
  CHECK(code(cudaMalloc(&x, 4)) == expected);
  cudaStream_t stream = nullptr;
  CHECK(code(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)) == expected);
  CHECK(code(launch(add, 1, 1, nullptr, nullptr, 1.0f, 1)) == expected);
  int version = -7;
  CHECK(cudaRuntimeGetVersion(&version) == cudaSuccess);
  CHECK(version == CUDART_VERSION);
}
