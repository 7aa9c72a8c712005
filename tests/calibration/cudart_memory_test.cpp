// Memory and copies of the CUDA runtime.
#include <cstdint>

#include "calibration/support.h"

namespace lockstep::calibration {
namespace {

bool aligned(const void* pointer, std::uintptr_t to) {
  return reinterpret_cast<std::uintptr_t>(pointer) % to == 0;
}

}  // namespace

TEST_CASE("cudaMalloc aligns to 256 bytes and refuses what the device has not") {
  void* first = nullptr;
  void* second = nullptr;
  REQUIRE(cudaMalloc(&first, 1) == cudaSuccess);
  REQUIRE(cudaMalloc(&second, 3) == cudaSuccess);
  CHECK(aligned(first, 256));  // programming guide, "Device Memory Accesses"
  CHECK(aligned(second, 256));
  CHECK(first != second);
  void* huge = nullptr;
  CHECK(code(cudaMalloc(&huge, std::size_t{1} << 45)) == cudaErrorMemoryAllocation);
  CHECK(cudaFree(first) == cudaSuccess);
  CHECK(cudaFree(second) == cudaSuccess);
}

TEST_CASE("cudaFree does nothing with null and fails the second time") {
  void* memory = nullptr;
  REQUIRE(cudaMalloc(&memory, 64) == cudaSuccess);
  CHECK(cudaFree(memory) == cudaSuccess);
  CHECK(code(cudaFree(memory)) == cudaErrorInvalidValue);
  CHECK(cudaFree(nullptr) == cudaSuccess);
}

TEST_CASE("cudaMemGetInfo counts in bytes of the device") {
  std::size_t free = 0;
  std::size_t total = 0;
  REQUIRE(cudaMemGetInfo(&free, &total) == cudaSuccess);
  CHECK(total > 0);
  CHECK(free <= total);
}

TEST_CASE("cudaMallocHost and cudaFreeHost: memory that the host uses and copies reach") {
  const Buffer<float> x(std::vector<float>{1, 2, 3});
  {
    const Pinned host(3);
    host.get()[0] = 0;
    const Stream stream;
    REQUIRE(cudaMemcpyAsync(host.get(), x.get(), 3 * sizeof(float), cudaMemcpyDeviceToHost,
                            stream) == cudaSuccess);
    REQUIRE(stream.wait() == cudaSuccess);
    CHECK(std::vector<float>(host.get(), host.get() + 3) == std::vector<float>{1, 2, 3});
  }
  float pageable = 0;
  CHECK(refused(cudaFreeHost(&pageable)));
}

TEST_CASE("cudaHostAlloc and cudaHostGetDevicePointer: a kernel works on memory of the host") {
  void* host = nullptr;
  REQUIRE(cudaHostAlloc(&host, sizeof(float), cudaHostAllocMapped) == cudaSuccess);
  *static_cast<float*>(host) = 1;
  void* mapped = nullptr;
  REQUIRE(cudaHostGetDevicePointer(&mapped, host, 0) == cudaSuccess);
  REQUIRE(add(nullptr, static_cast<float*>(mapped), 2) == cudaSuccess);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(*static_cast<float*>(host) == 3);
  CHECK(cudaFreeHost(host) == cudaSuccess);
  // "memory allocated by cudaHostAlloc or registered by cudaHostRegister", which this is not; where
  // the device reads all memory of the host it may be given back.
  int reads_all = 0;
  const cudaError_t asked = cudaDeviceGetAttribute(&reads_all, cudaDevAttrPageableMemoryAccess, 0);
  cudaGetLastError();
  float pageable = 0;
  if (asked == cudaSuccess && reads_all == 0) {
    CHECK(refused(cudaHostGetDevicePointer(&mapped, &pageable, 0)));
  }
}

TEST_CASE("cudaPointerGetAttributes tells device, pinned and unregistered memory apart") {
  const int last = device_count() - 1;
  REQUIRE(cudaSetDevice(last) == cudaSuccess);
  {
    const Buffer<float> x(4);
    REQUIRE(cudaSetDevice(0) == cudaSuccess);
    cudaPointerAttributes attributes{};
    REQUIRE(cudaPointerGetAttributes(&attributes, x.get()) == cudaSuccess);
    CHECK(attributes.type == cudaMemoryTypeDevice);
    CHECK(attributes.device == last);
    const Pinned pinned(1);
    REQUIRE(cudaPointerGetAttributes(&attributes, pinned.get()) == cudaSuccess);
    CHECK(attributes.type == cudaMemoryTypeHost);
    CHECK(attributes.hostPointer == pinned.get());
    float pageable = 0;
    REQUIRE(cudaPointerGetAttributes(&attributes, &pageable) == cudaSuccess);
    CHECK(attributes.type == cudaMemoryTypeUnregistered);
  }
}

TEST_CASE("cudaMemcpy moves bytes to, on and from the device, and none is no fault") {
  const std::vector<float> sent{1, 2, 3, 4};
  const Buffer<float> x(sent);
  const Buffer<float> y(4);
  REQUIRE(cudaMemcpy(y.get(), x.get() + 1, 3 * sizeof(float), cudaMemcpyDeviceToDevice) ==
          cudaSuccess);
  CHECK(y.read() == std::vector<float>{2, 3, 4, 0});
  std::vector<float> host(4);
  REQUIRE(cudaMemcpy(host.data(), x.get(), 16, cudaMemcpyDefault) == cudaSuccess);
  CHECK(host == sent);
  CHECK(cudaMemcpy(host.data(), x.get(), 0, cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(refused(cudaMemcpy(host.data(), x.get(), 16, static_cast<cudaMemcpyKind>(7))));
}

TEST_CASE("cudaMemcpy between devices, in the order of the devices' work") {
  if (device_count() < 2) return;
  const Buffer<float> here(std::vector<float>{1, 2});
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  {
    const Buffer<float> there(2);
    REQUIRE(cudaMemcpy(there.get(), here.get(), 8, cudaMemcpyDefault) == cudaSuccess);
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
    CHECK(there.read() == std::vector<float>{1, 2});
  }
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
}

TEST_CASE("cudaMemcpyAsync reads pinned memory in the order of the stream") {
  const Buffer<float> x(1);
  const Pinned host(1);
  const Stream stream;
  host.get()[0] = 1;
  {
    Gate gate(stream);
    REQUIRE(cudaMemcpyAsync(x.get(), host.get(), 4, cudaMemcpyHostToDevice, stream) == cudaSuccess);
    host.get()[0] = 2;
    gate.open();
    REQUIRE(stream.wait() == cudaSuccess);
  }
  CHECK(x.read() == std::vector<float>{2});
}

TEST_CASE("cudaMemcpyAsync from pageable memory has read when it returns") {
  // "API synchronization behavior": such memory is staged before the call returns.
  const Buffer<float> x(1);
  const Stream stream;
  std::vector<float> host{1};
  REQUIRE(cudaMemcpyAsync(x.get(), host.data(), 4, cudaMemcpyHostToDevice, stream) == cudaSuccess);
  host[0] = 2;
  REQUIRE(stream.wait() == cudaSuccess);
  CHECK(x.read() == std::vector<float>{1});
}

TEST_CASE("cudaMemset and cudaMemsetAsync set bytes") {
  const Buffer<unsigned> x(3);
  REQUIRE(cudaMemset(x.get(), 0x101, 8) == cudaSuccess);  // the value is taken as one byte
  const Stream stream;
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  REQUIRE(cudaMemsetAsync(x.get() + 1, 0xff, 4, stream) == cudaSuccess);
  REQUIRE(stream.wait() == cudaSuccess);
  CHECK(x.read() == std::vector<unsigned>{0x01010101, 0xffffffff, 0});
}

TEST_CASE("cudaMemcpyToSymbol and cudaMemcpyFromSymbol reach the variable that kernels read") {
  const Buffer<float> x(1);
  REQUIRE(launch_add_bias(x.get()) == cudaSuccess);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(x.read() == std::vector<float>{kBias});
  const float five = 5;
  REQUIRE(cudaMemcpyToSymbol(bias_symbol(), &five, sizeof five, 0, cudaMemcpyHostToDevice) ==
          cudaSuccess);
  REQUIRE(launch_add_bias(x.get()) == cudaSuccess);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(x.read() == std::vector<float>{kBias + 5});
  float value = 0;
  REQUIRE(cudaMemcpyFromSymbol(&value, bias_symbol(), sizeof value, 0, cudaMemcpyDeviceToHost) ==
          cudaSuccess);
  CHECK(value == 5);
  REQUIRE(cudaMemcpyToSymbol(bias_symbol(), &kBias, sizeof kBias, 0, cudaMemcpyHostToDevice) ==
          cudaSuccess);
}

TEST_CASE("cudaGetSymbolAddress and cudaGetSymbolSize describe a variable of the device") {
  void* address = nullptr;
  std::size_t bytes = 0;
  REQUIRE(cudaGetSymbolAddress(&address, bias_symbol()) == cudaSuccess);
  REQUIRE(cudaGetSymbolSize(&bytes, bias_symbol()) == cudaSuccess);
  CHECK(bytes == sizeof(float));
  float value = 0;
  REQUIRE(cudaMemcpy(&value, address, sizeof value, cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(value == kBias);
  CHECK(code(cudaGetSymbolAddress(&address, &value)) == cudaErrorInvalidSymbol);
  CHECK(code(cudaGetSymbolSize(&bytes, &value)) == cudaErrorInvalidSymbol);
}

}  // namespace lockstep::calibration
