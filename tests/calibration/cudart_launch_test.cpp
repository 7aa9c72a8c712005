// Kernel launches of the CUDA runtime.
#include <algorithm>

#include "calibration/support.h"

namespace lockstep::calibration {
namespace {

template <class... Arguments>
cudaError_t launch(Kernel kernel, dim3 grid, dim3 block, std::size_t shared, cudaStream_t stream,
                   Arguments... arguments) {
  void* values[] = {&arguments...};
  return cudaLaunchKernel(kernel, grid, block, values, shared, stream);
}

std::vector<float> numbers(int count) {
  std::vector<float> all;
  for (int i = 0; i < count; ++i) all.push_back(static_cast<float>(i));
  return all;
}

int shared_limit() {
  int bytes = 0;
  REQUIRE(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0) ==
          cudaSuccess);
  return bytes;
}

}  // namespace

TEST_CASE("cudaLaunchKernel runs a grid and takes its arguments at the call") {
  const Buffer<float> x(300);
  const Stream stream;
  float* const data = x.get();
  REQUIRE(launch(add_value_kernel(), 3, 128, 0, stream, data, 2.5F, 299) == cudaSuccess);
  REQUIRE(stream.wait() == cudaSuccess);
  std::vector<float> wanted(300, 2.5F);
  wanted[299] = 0;
  CHECK(x.read() == wanted);
}

TEST_CASE("cudaLaunchKernel refuses blocks and grids that there cannot be") {
  const Buffer<float> x(1);
  float* const data = x.get();
  const auto shape = [&](dim3 grid, dim3 block) {
    return code(launch(add_value_kernel(), grid, block, 0, nullptr, data, 1.0F, 1));
  };
  CHECK(shape(1, 1025) == cudaErrorInvalidConfiguration);
  CHECK(shape(1, dim3(32, 33)) == cudaErrorInvalidConfiguration);
  CHECK(shape(0, 1) == cudaErrorInvalidConfiguration);
  CHECK(shape(1, 0) == cudaErrorInvalidConfiguration);
  CHECK(x.read() == std::vector<float>{0});
}

TEST_CASE("a launch that was refused is the thread's last error") {
  const Buffer<float> x(1);
  CHECK(launch_add_value(1, 2048, nullptr, x.get(), 1, 1) == cudaErrorInvalidConfiguration);
  CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration);
  CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("cudaFuncSetAttribute lets a kernel have more than 48 KiB of shared memory, to a limit") {
  const Buffer<float> x(numbers(64));
  float* const data = x.get();
  const int bytes = (48 << 10) + 1024;
  CHECK(refused(launch(reverse_kernel(), 1, 64, bytes, nullptr, data)));
  CHECK(refused(cudaFuncSetAttribute(reverse_kernel(), cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     shared_limit() + 1)));
  REQUIRE(cudaFuncSetAttribute(reverse_kernel(), cudaFuncAttributeMaxDynamicSharedMemorySize,
                               bytes) == cudaSuccess);
  REQUIRE(launch(reverse_kernel(), 1, 64, bytes, nullptr, data) == cudaSuccess);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  std::vector<float> wanted = numbers(64);
  std::reverse(wanted.begin(), wanted.end());
  CHECK(x.read() == wanted);
}

TEST_CASE("cudaFuncGetAttributes tells a kernel's static shared memory and largest block") {
  cudaFuncAttributes attributes{};
  REQUIRE(cudaFuncGetAttributes(&attributes, rotate_kernel()) == cudaSuccess);
  CHECK(attributes.sharedSizeBytes == kStaticSharedBytes);
  CHECK(attributes.maxThreadsPerBlock > 0);
  CHECK(attributes.maxThreadsPerBlock <= 1024);
  const Buffer<float> x(numbers(64));
  float* const data = x.get();
  REQUIRE(launch(rotate_kernel(), 1, 64, 0, nullptr, data) == cudaSuccess);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(x.read()[0] == 1);
  CHECK(x.read()[63] == 0);
}

TEST_CASE("cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags: fewer with more shared memory") {
  const auto blocks = [](std::size_t shared) {
    int count = -1;
    REQUIRE(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
                &count, rotate_kernel(), 128, shared, cudaOccupancyDefault) == cudaSuccess);
    return count;
  };
  CHECK(blocks(0) >= 1);
  CHECK(blocks(40 << 10) >= 1);
  CHECK(blocks(40 << 10) < blocks(0));
  int count = -1;
  CHECK(refused(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&count, rotate_kernel(), 0,
                                                                       0, cudaOccupancyDefault)));
}

TEST_CASE("cudaLaunchKernelExC launches as its configuration says") {
  const Buffer<float> x(2);
  const Stream stream;
  float* data = x.get();
  float value = 3;
  int count = 2;
  void* values[] = {&data, &value, &count};
  cudaLaunchConfig_t config{};
  config.gridDim = 1;
  config.blockDim = 2;
  config.stream = stream;
  REQUIRE(cudaLaunchKernelExC(&config, add_value_kernel(), values) == cudaSuccess);
  REQUIRE(stream.wait() == cudaSuccess);
  CHECK(x.read() == std::vector<float>{3, 3});
  config.blockDim = 2048;
  CHECK(code(cudaLaunchKernelExC(&config, add_value_kernel(), values)) ==
        cudaErrorInvalidConfiguration);
}

}  // namespace lockstep::calibration
