#include <algorithm>
#include <cstdlib>
#include <numeric>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sys/mman.h>
#endif

#include "runtime_kernels.h"

using namespace cusim::testing;

extern "C" {
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared,
                                     cudaStream_t stream);
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared, void* stream);
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* stub);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                               std::size_t shared, cudaStream_t stream);
}

TEST_CASE("a launch covers grid and block") {
  const DeviceArray<float> x(std::vector<float>(1000, 1.0f));
  REQUIRE(launch(add, 4, 256, nullptr, x.data(), 2.0f, 999) == cudaSuccess);
  std::vector<float> expected(1000, 3.0f);
  expected.back() = 1;
  CHECK(x.values() == expected);
}

TEST_CASE("a seed shuffles the threads of a block and the blocks of a grid") {
  constexpr int kBlocks = 12;
  constexpr int kThreads = 64;
  const DeviceArray<int> x(std::vector<int>(kBlocks * kThreads));
  REQUIRE(launch(note_order, kBlocks, kThreads, nullptr, x.data()) == cudaSuccess);
  const std::vector<int> when = x.values();
  std::vector<int> sorted = when;
  std::sort(sorted.begin(), sorted.end());
  std::vector<int> in_order(when.size());
  std::iota(in_order.begin(), in_order.end(), 0);
  CHECK(sorted == in_order);  // each once
  std::vector<int> blocks;
  bool threads_in_order = true;
  for (std::size_t block = 0; block < kBlocks; ++block) {
    const auto first = when.begin() + static_cast<std::ptrdiff_t>(block * kThreads);
    blocks.push_back(*std::min_element(first, first + kThreads) / kThreads);
    threads_in_order = threads_in_order && std::is_sorted(first, first + kThreads);
  }
  const bool seeded = std::getenv("CUSIM_SEED") != nullptr;
  CHECK(threads_in_order == !seeded);
  CHECK(std::is_sorted(blocks.begin(), blocks.end()) == !seeded);
}

#if defined(__SANITIZE_ADDRESS__)
TEST_CASE("the stacks of a block's threads leave no marks of AddressSanitizer behind") {
  {  // The stream's thread keeps the stacks until it ends.
    const TestStream stream;
    const DeviceArray<float> x(std::vector<float>(64));
    REQUIRE(launch(add, 1, 64, stream, x.data(), 2.0f, 64) == cudaSuccess);
    REQUIRE(launch(half_block_waits, 1, 64, stream) == cudaSuccess);
    CHECK(cudaStreamSynchronize(stream) != cudaSuccess);
  }
  cusim_revive_devices();
  // The kernel hands out the addresses that were given back last.
  constexpr std::size_t kBytes = std::size_t{32} << 20;
  void* const fresh = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  REQUIRE(fresh != MAP_FAILED);
  CHECK(__asan_region_is_poisoned(fresh, kBytes) == nullptr);
  munmap(fresh, kBytes);
}
#endif

TEST_CASE("launches by triple chevrons arrive as nvcc makes them") {
  const DeviceArray<float> x({1.0f});
  const TestStream stream;
  float* data = x.data();
  float value = 2;
  int count = 1;
  void* arguments[] = {&data, &value, &count};
  __cudaPushCallConfiguration(1, 32, 16, stream);
  dim3 grid;
  dim3 block;
  std::size_t shared = 0;
  cudaStream_t popped = nullptr;
  REQUIRE(__cudaPopCallConfiguration(&grid, &block, &shared, &popped) == cudaSuccess);
  CHECK(block.x == 32);
  CHECK(shared == 16);
  CHECK(popped == stream);
  cudaKernel_t kernel = nullptr;
  REQUIRE(__cudaGetKernel(&kernel, &add) == cudaSuccess);
  REQUIRE(__cudaLaunchKernel(kernel, grid, block, arguments, shared, popped) == cudaSuccess);
  value = 100;  // arguments were copied
  CHECK(x.values() == std::vector<float>{3});
  CHECK(code(__cudaPopCallConfiguration(&grid, &block, &shared, &popped)) ==
        cudaErrorMissingConfiguration);
}

TEST_CASE("shapes that no GPU takes are refused at once") {
  const DeviceArray<float> x({1.0f});
  const auto shaped = [&](dim3 grid, dim3 block) {
    return code(launch(add, grid, block, nullptr, x.data(), 1.0f, 1));
  };
  CHECK(shaped(0, 1) == cudaErrorInvalidConfiguration);
  CHECK(shaped(1, 0) == cudaErrorInvalidConfiguration);
  CHECK(shaped(1, 1025) == cudaErrorInvalidConfiguration);
  CHECK(shaped(1, dim3(64, 32)) == cudaErrorInvalidConfiguration);
  CHECK(shaped(1, dim3(1, 1, 65)) == cudaErrorInvalidConfiguration);
  CHECK(shaped(dim3(1, 65536), 1) == cudaErrorInvalidConfiguration);
  CHECK(x.values() == std::vector<float>{1});
  CHECK(shaped(1, 1024) == cudaSuccess);
  CHECK(x.values() == std::vector<float>{2});
}

TEST_CASE("more than 48 KiB of shared memory is asked for on each device") {
  const auto with_shared = [](Stub& kernel, std::size_t bytes) {
    return code(cudaLaunchKernel(&kernel, 1, 1, nullptr, bytes, nullptr));
  };
  CHECK(with_shared(big_shared, 8 << 10) == cudaSuccess);
  CHECK(with_shared(big_shared, (8 << 10) + 1) == cudaErrorInvalidValue);
  const auto allow = [](int bytes) {
    return code(
        cudaFuncSetAttribute(&big_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  };
  CHECK(allow(188 << 10) == cudaErrorInvalidValue);  // 227 KiB with the 40 KiB of its own
  CHECK(allow(187 << 10) == cudaSuccess);
  CHECK(with_shared(big_shared, 187 << 10) == cudaSuccess);
  cudaFuncAttributes attributes{};
  REQUIRE(cudaFuncGetAttributes(&attributes, &big_shared) == cudaSuccess);
  CHECK(attributes.sharedSizeBytes == 40 << 10);
  CHECK(attributes.maxDynamicSharedSizeBytes == 187 << 10);
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  CHECK(with_shared(big_shared, 187 << 10) == cudaErrorInvalidValue);
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
}

TEST_CASE("kernels that are not there are refused") {
  int nothing = 0;
  CHECK(code(cudaLaunchKernel(&nothing, 1, 1, nullptr, 0, nullptr)) == 98);
  CHECK(code(launch(missing, 1, 1, nullptr)) == cudaErrorInvalidDeviceFunction);
}

TEST_CASE("extended launches take what they can and refuse the rest") {
  const DeviceArray<float> x({1.0f});
  float* data = x.data();
  float value = 2;
  int count = 1;
  void* arguments[] = {&data, &value, &count};
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  cudaLaunchConfig_t config{};
  config.gridDim = config.blockDim = 1;
  config.attrs = &attribute;
  config.numAttrs = 1;
  CHECK(cudaLaunchKernelExC(&config, &add, arguments) == cudaSuccess);
  attribute.id = cudaLaunchAttributeCooperative;
  CHECK(code(cudaLaunchKernelExC(&config, &add, arguments)) == cudaErrorNotSupported);
  CHECK(x.values() == std::vector<float>{3});
}

TEST_CASE("occupancy is bounded by threads and shared memory") {
  const auto blocks = [](int size, std::size_t shared) {
    int count = -1;
    REQUIRE(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&count, &add, size, shared, 0) ==
            cudaSuccess);
    return count;
  };
  CHECK(blocks(256, 0) == 8);
  CHECK(blocks(256, 100 << 10) == 2);
  CHECK(blocks(2048, 0) == 0);
}

TEST_CASE("barriers order the threads of a block") {
  const DeviceArray<int> sums(std::vector<int>(3));
  REQUIRE(launch(block_sum, 3, 256, nullptr, sums.data()) == cudaSuccess);
  CHECK(sums.values() == std::vector<int>(3, 255 * 256 / 2));
  const DeviceArray<int> counts(std::vector<int>(99));
  REQUIRE(launch(count_even, 1, 99, nullptr, counts.data()) == cudaSuccess);
  CHECK(counts.values() == std::vector<int>(99, 501));
}

TEST_CASE("shuffles move values between the lanes of each warp") {
  std::vector<int> values(64);
  std::iota(values.begin(), values.end(), 0);
  const DeviceArray<int> x(values);
  REQUIRE(launch(rotate_warp, 1, 64, nullptr, x.data()) == cudaSuccess);
  std::rotate(values.begin(), values.begin() + 1, values.begin() + 32);
  std::rotate(values.begin() + 32, values.begin() + 33, values.end());
  CHECK(x.values() == values);
}
