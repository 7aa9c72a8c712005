// Devices, versions and errors of the CUDA runtime.
#include <algorithm>
#include <cstring>
#include <string>

#include "calibration/support.h"

namespace lockstep::calibration {
namespace {

int attribute(cudaDeviceAttr name, int device = 0) {
  int value = -1;
  REQUIRE(cudaDeviceGetAttribute(&value, name, device) == cudaSuccess);
  return value;
}

}  // namespace

TEST_CASE("cudaGetDeviceCount, cudaSetDevice and cudaGetDevice agree, thread by thread") {
  const int count = device_count();
  REQUIRE(count >= 1);
  REQUIRE(cudaSetDevice(count - 1) == cudaSuccess);
  int mine = -1;
  REQUIRE(cudaGetDevice(&mine) == cudaSuccess);
  CHECK(mine == count - 1);
  int other = -1;
  std::thread([&] { cudaGetDevice(&other); }).join();
  CHECK(other == 0);
  CHECK(code(cudaSetDevice(count)) == cudaErrorInvalidDevice);
  CHECK(code(cudaSetDevice(-1)) == cudaErrorInvalidDevice);
  REQUIRE(cudaGetDevice(&mine) == cudaSuccess);
  CHECK(mine == count - 1);
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
}

TEST_CASE("cudaDeviceGetAttribute and cudaGetDeviceProperties say the same") {
  cudaDeviceProp properties{};
  REQUIRE(cudaGetDeviceProperties(&properties, 0) == cudaSuccess);
  CHECK(std::strlen(properties.name) > 0);
  CHECK(attribute(cudaDevAttrComputeCapabilityMajor) == properties.major);
  CHECK(attribute(cudaDevAttrComputeCapabilityMinor) == properties.minor);
  CHECK(attribute(cudaDevAttrMultiProcessorCount) == properties.multiProcessorCount);
  CHECK(attribute(cudaDevAttrMaxThreadsPerBlock) == properties.maxThreadsPerBlock);
  CHECK(attribute(cudaDevAttrWarpSize) == properties.warpSize);
  CHECK(static_cast<std::size_t>(attribute(cudaDevAttrMaxSharedMemoryPerBlock)) ==
        properties.sharedMemPerBlock);
  CHECK(static_cast<std::size_t>(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin)) ==
        properties.sharedMemPerBlockOptin);
  CHECK(attribute(cudaDevAttrPciBusId) == properties.pciBusID);
  CHECK(properties.major * 10 + properties.minor >= 75);
  // The programming guide's table of technical specifications: these on every architecture.
  CHECK(properties.warpSize == 32);
  CHECK(properties.maxThreadsPerBlock == 1024);
  CHECK(properties.sharedMemPerBlock == 48 << 10);
  CHECK(properties.sharedMemPerBlockOptin >= properties.sharedMemPerBlock);

  int value = 0;
  CHECK(code(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, device_count())) ==
        cudaErrorInvalidDevice);
  CHECK(code(cudaGetDeviceProperties(&properties, device_count())) == cudaErrorInvalidDevice);
}

TEST_CASE("cudaDeviceGetPCIBusId writes domain:bus:device.function") {
  char text[32] = {};
  REQUIRE(cudaDeviceGetPCIBusId(text, sizeof text, 0) == cudaSuccess);
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned device = 0;
  unsigned function = 0;
  REQUIRE(std::sscanf(text, "%x:%x:%x.%x", &domain, &bus, &device, &function) == 4);
  CHECK(static_cast<int>(bus) == attribute(cudaDevAttrPciBusId));
  CHECK(code(cudaDeviceGetPCIBusId(text, sizeof text, device_count())) == cudaErrorInvalidDevice);
}

TEST_CASE("cudaDeviceCanAccessPeer answers for pairs of devices that exist") {
  int can = -1;
  if (device_count() > 1) {
    REQUIRE(cudaDeviceCanAccessPeer(&can, 0, 1) == cudaSuccess);
    CHECK((can == 0 || can == 1));
  }
  CHECK(code(cudaDeviceCanAccessPeer(&can, 0, device_count())) == cudaErrorInvalidDevice);
}

TEST_CASE(
    "cudaDeviceEnablePeerAccess and cudaDeviceDisablePeerAccess: once each, to another device") {
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
  CHECK(code(cudaDeviceEnablePeerAccess(device_count(), 0)) == cudaErrorInvalidDevice);
  CHECK(refused(cudaDeviceEnablePeerAccess(0, 0)));
  if (device_count() < 2) return;
  CHECK(code(cudaDeviceEnablePeerAccess(1, 1)) == cudaErrorInvalidValue);
  CHECK(code(cudaDeviceDisablePeerAccess(1)) == cudaErrorPeerAccessNotEnabled);
  int can = 0;
  REQUIRE(cudaDeviceCanAccessPeer(&can, 0, 1) == cudaSuccess);
  if (can == 0) {
    CHECK(code(cudaDeviceEnablePeerAccess(1, 0)) == cudaErrorPeerAccessUnsupported);
    return;
  }
  REQUIRE(cudaDeviceEnablePeerAccess(1, 0) == cudaSuccess);
  CHECK(code(cudaDeviceEnablePeerAccess(1, 0)) == cudaErrorPeerAccessAlreadyEnabled);
  CHECK(cudaDeviceDisablePeerAccess(1) == cudaSuccess);
  CHECK(code(cudaDeviceDisablePeerAccess(1)) == cudaErrorPeerAccessNotEnabled);
}

TEST_CASE("cudaRuntimeGetVersion and cudaDriverGetVersion: the driver is at least as new") {
  int runtime = 0;
  int driver = 0;
  REQUIRE(cudaRuntimeGetVersion(&runtime) == cudaSuccess);
  REQUIRE(cudaDriverGetVersion(&driver) == cudaSuccess);
  CHECK(runtime / 1000 == CUDART_VERSION / 1000);
  // Minor versions of one major are compatible both ways (CUDA compatibility guide).
  CHECK(driver / 1000 >= runtime / 1000);
}

TEST_CASE("cudaGetErrorName and cudaGetErrorString know the runtime's errors and no other") {
  CHECK(std::string(cudaGetErrorName(cudaSuccess)) == "cudaSuccess");
  CHECK(std::string(cudaGetErrorName(cudaErrorInvalidValue)) == "cudaErrorInvalidValue");
  CHECK(std::string(cudaGetErrorName(cudaErrorStreamCaptureInvalidated)) ==
        "cudaErrorStreamCaptureInvalidated");
  CHECK(std::strlen(cudaGetErrorString(cudaErrorMemoryAllocation)) > 0);
  const auto none = static_cast<cudaError_t>(9998);
  CHECK(std::string(cudaGetErrorName(none)) == "unrecognized error code");
  CHECK(std::string(cudaGetErrorString(none)) == "unrecognized error code");
}

TEST_CASE("cudaPeekAtLastError keeps the thread's last error and cudaGetLastError takes it") {
  cudaGetLastError();
  CHECK(cudaSetDevice(-1) == cudaErrorInvalidDevice);
  CHECK(cudaPeekAtLastError() == cudaErrorInvalidDevice);
  cudaError_t other = cudaErrorUnknown;
  std::thread([&] { other = cudaPeekAtLastError(); }).join();
  CHECK(other == cudaSuccess);
  CHECK(cudaGetLastError() == cudaErrorInvalidDevice);
  CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("cudaDeviceSynchronize waits for all streams of the device") {
  const Buffer<float> x(1);
  const Stream first;
  const Stream second;
  REQUIRE(add(first, x.get(), 1) == cudaSuccess);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  REQUIRE(add(second, x.get(), 1) == cudaSuccess);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(cudaStreamQuery(first) == cudaSuccess);
  CHECK(cudaStreamQuery(second) == cudaSuccess);
  CHECK(x.read() == std::vector<float>{2});
}

}  // namespace lockstep::calibration
