#include <set>

#include "runtime_kernels.h"

using namespace cusim::testing;

TEST_CASE("devices have the asked-for number, architecture and their own identity") {
  int count = 0;
  REQUIRE(cudaGetDeviceCount(&count) == cudaSuccess);
  REQUIRE(count == 3);
  std::set<std::string> uuids;
  std::set<std::string> addresses;
  for (int device = 0; device < count; ++device) {
    cudaDeviceProp properties{};
    REQUIRE(cudaGetDeviceProperties(&properties, device) == cudaSuccess);
    CHECK(properties.major == 7);
    CHECK(properties.minor == 5);
    CHECK(properties.sharedMemPerBlockOptin == 64 << 10);
    CHECK(properties.totalGlobalMem == std::size_t{100} << 20);
    uuids.emplace(properties.uuid.bytes, sizeof properties.uuid.bytes);
    char address[32] = {};
    REQUIRE(cudaDeviceGetPCIBusId(address, sizeof address, device) == cudaSuccess);
    addresses.emplace(address);
    int major = 0;
    REQUIRE(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == 0);
    CHECK(major == 7);
  }
  CHECK(uuids.size() == 3);
  CHECK(addresses.size() == 3);
}

TEST_CASE("there is no device beyond the last") {
  cudaDeviceProp properties{};
  int value = 0;
  char address[32] = {};
  CHECK(code(cudaSetDevice(3)) == cudaErrorInvalidDevice);
  CHECK(code(cudaSetDevice(-1)) == cudaErrorInvalidDevice);
  CHECK(code(cudaGetDeviceProperties(&properties, 3)) == cudaErrorInvalidDevice);
  CHECK(code(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 3)) == cudaErrorInvalidDevice);
  CHECK(code(cudaDeviceGetPCIBusId(address, 8, 0)) == cudaErrorInvalidValue);
}

TEST_CASE("the device's memory is as large as it was asked for") {
  void* x = nullptr;
  CHECK(code(cudaMalloc(&x, 101 << 20)) == cudaErrorMemoryAllocation);
  CHECK(cudaMalloc(&x, 100 << 20) == cudaSuccess);
  CHECK(cudaFree(x) == cudaSuccess);
}

TEST_CASE("versions are those of the toolkit and of the driver asked for") {
  int version = 0;
  REQUIRE(cudaRuntimeGetVersion(&version) == cudaSuccess);
  CHECK(version == CUDART_VERSION);
  REQUIRE(cudaDriverGetVersion(&version) == cudaSuccess);
  CHECK(version == 13010);
}

TEST_CASE("errors have names and texts") {
  CHECK(cudaGetErrorName(cudaErrorMemoryAllocation) == std::string("cudaErrorMemoryAllocation"));
  CHECK(cudaGetErrorString(cudaErrorMemoryAllocation) == std::string("out of memory"));
  CHECK(cudaGetErrorName(static_cast<cudaError_t>(12345)) ==
        std::string("unrecognized error code"));
}
