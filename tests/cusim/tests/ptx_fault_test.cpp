// What translated kernels do wrong is found, with the error that CUDA has for it. A failed device
// stays failed, so every case has its own.
#include "tests/ptx_support.h"

namespace cusim::test {
namespace {

void use_device(int device) {
  REQUIRE(cudaSetDevice(device) == cudaSuccess);
}

TEST_CASE("a misaligned access is an error") {
  use_device(1);
  const Buffer<float> x(64);
  CHECK(launch(kMisaligned, dim3(1), dim3(2), 0, x.get()) == cudaSuccess);
  CHECK(launch(kMisaligned, dim3(1), dim3(32), 0, x.get()) == cudaErrorMisalignedAddress);
}

TEST_CASE("an access behind shared memory is an error") {
  use_device(2);
  const Buffer<int> y(1);
  CHECK(launch(kBehindShared, dim3(1), dim3(64), 0, y.get(), 63) == cudaSuccess);
  CHECK(launch(kBehindShared, dim3(1), dim3(64), 0, y.get(), 64) == cudaErrorIllegalAddress);
}

TEST_CASE("an access behind global memory is an error") {
  use_device(3);
  const Buffer<float> x(64);
  CHECK(launch(kBehindMemory, dim3(1), dim3(32), 0, x.get(), 63) == cudaSuccess);
  CHECK(launch(kBehindMemory, dim3(1), dim3(32), 0, x.get(), 64) == cudaErrorIllegalAddress);
}

TEST_CASE("an access to memory of another device is an error") {
  use_device(0);
  const Buffer<float> x(64);
  use_device(4);
  CHECK(launch(kBehindMemory, dim3(1), dim3(32), 0, x.get(), 0) == cudaErrorIllegalAddress);
  use_device(0);
}

TEST_CASE("an access to memory that was freed is an error") {
  use_device(8);
  float* x = nullptr;
  REQUIRE(cudaMalloc(reinterpret_cast<void**>(&x), 64 * sizeof(float)) == cudaSuccess);
  CHECK(launch(kBehindMemory, dim3(1), dim3(32), 0, x, 0) == cudaSuccess);
  REQUIRE(cudaFree(x) == cudaSuccess);
  CHECK(launch(kBehindMemory, dim3(1), dim3(32), 0, x, 0) == cudaErrorIllegalAddress);
}

TEST_CASE("a failed assertion is an error") {
  use_device(5);
  CHECK(launch(kAssert, dim3(1), dim3(32), 0, 3) == cudaSuccess);
  CHECK(launch(kAssert, dim3(1), dim3(32), 0, 4) == cudaErrorAssert);
}

TEST_CASE("a trap is an error") {
  use_device(6);
  CHECK(launch(kTrap, dim3(1), dim3(32), 0) == cudaErrorLaunchFailure);
}

TEST_CASE("a shuffle that half of its lanes never reach is an error") {
  use_device(7);
  const Buffer<float> x(32);
  CHECK(launch(kUnequalBarrier, dim3(1), dim3(32), 0, x.get()) == cudaErrorLaunchFailure);
}

}  // namespace
}  // namespace cusim::test
