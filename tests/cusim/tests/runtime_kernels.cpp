#include "runtime_kernels.h"

#include <cstring>
#include <memory>
#include <thread>

#include "runtime/kernel_api.h"

// What nvcc's objects call before main.
extern "C" {
void** __cudaRegisterFatBinary(void* binary);
void __cudaRegisterFunction(void** handle, const char* stub, char* stub_name, const char* name,
                            int thread_limit, uint3* thread, uint3* block, dim3* block_size,
                            dim3* grid_size, int* warp_size);
void __cudaRegisterVar(void** handle, char* symbol, char* device_address, const char* name,
                       int external, std::size_t bytes, int constant, int global);
void __cudaRegisterFatBinaryEnd(void** handle);
}

namespace cusim::testing {

Stub add{"add"};
Stub block_sum{"block_sum"};
Stub rotate_warp{"rotate_warp"};
Stub count_even{"count_even"};
Stub half_warp_shuffles{"half_warp_shuffles"};
Stub half_block_waits{"half_block_waits"};
Stub throws{"throws"};
Stub read_neighbour{"read_neighbour"};
Stub add_variable{"add_variable"};
Stub note_order{"note_order"};
Stub missing{"missing"};
Stub big_shared{"big_shared"};
float bias = 0;

namespace {

constexpr std::uint32_t kAllLanes = 0xffffffffu;

template <class T>
T argument(const LaunchContext& launch, int index) {
  T value;
  std::memcpy(&value, launch.arguments[index], sizeof value);
  return value;
}

/// One element of global memory, checked as translated kernels do.
template <class T>
T& global(T* pointer) {
  const auto address = reinterpret_cast<std::uint64_t>(pointer) & kAddressMask;
  const LaunchContext& launch = *current_block->launch;
  AddressRange range;
  if (launch.check && !find_allocation(address, sizeof(T), launch.device, &range)) {
    throw KernelError{700, "illegal access"};
  }
  return *reinterpret_cast<T*>(address);
}

void run_add(const LaunchContext& launch) {
  auto* x = argument<float*>(launch, 0);
  const auto value = argument<float>(launch, 1);
  const auto count = argument<int>(launch, 2);
  run_grid(launch, 0, [&] {
    const unsigned i = current_block->index.x * launch.block.x + current_thread->index.x;
    if (i < static_cast<unsigned>(count)) global(x + i) += value;
  });
}

void run_block_sum(const LaunchContext& launch) {
  auto* out = argument<int*>(launch, 0);
  run_grid(launch, launch.block.x * sizeof(int), [&] {
    auto* shared = reinterpret_cast<int*>(current_block->shared);
    const unsigned i = current_thread->index.x;
    shared[i] = static_cast<int>(i);
    for (unsigned half = launch.block.x / 2; half > 0; half /= 2) {
      current_block->barrier();
      if (i < half) shared[i] += shared[i + half];
    }
    if (i == 0) global(out + current_block->index.x) = shared[0];
  });
}

void run_rotate_warp(const LaunchContext& launch) {
  auto* x = argument<int*>(launch, 0);
  run_grid(launch, 0, [&] {
    const unsigned i = current_thread->linear;
    const auto own = static_cast<std::uint64_t>(global(x + i));
    const unsigned next = (current_thread->lane + 1) % 32;
    global(x + i) =
        static_cast<int>(current_block->warp(WarpOperation::shuffle, kAllLanes, own, next));
  });
}

void run_count_even(const LaunchContext& launch) {
  auto* out = argument<int*>(launch, 0);
  run_grid(launch, 0, [&] {
    const unsigned i = current_thread->linear;
    const unsigned even = current_block->barrier(i % 2 == 0);
    const unsigned first = current_block->barrier(i == 0);
    global(out + i) = static_cast<int>(10 * even + first);
  });
}

void run_half_warp_shuffles(const LaunchContext& launch) {
  run_grid(launch, 0, [] {
    if (current_thread->lane < 16) current_block->warp(WarpOperation::sync, kAllLanes, 0);
  });
}

void run_half_block_waits(const LaunchContext& launch) {
  run_grid(launch, 0, [&] {
    if (current_thread->linear % 2 == 0) {
      current_block->warp(WarpOperation::sync, kAllLanes, 0);
    } else {
      current_block->barrier();
    }
  });
}

void run_throws(const LaunchContext& launch) {
  throw KernelError{argument<int>(launch, 0), "as asked"};
}

void run_read_neighbour(const LaunchContext& launch) {
  auto* out = argument<int*>(launch, 0);
  const auto wait = argument<int>(launch, 1);
  run_grid(launch, launch.block.x * sizeof(int), [&] {
    auto* shared = reinterpret_cast<int*>(current_block->shared);
    const unsigned i = current_thread->index.x;
    shared[i] = static_cast<int>(i);
    if (wait) current_block->barrier();
    global(out + i) = shared[(i + 1) % launch.block.x];
  });
}

void run_note_order(const LaunchContext& launch) {
  auto* out = argument<int*>(launch, 0);
  int ran = 0;
  run_grid(launch, 0, [&] {
    const unsigned i = current_block->index.x * launch.block.x + current_thread->index.x;
    global(out + i) = ran++;
  });
}

void run_add_variable(const LaunchContext& launch) {
  auto* x = argument<float*>(launch, 0);
  run_grid(launch, 0, [&] {
    float value;
    std::memcpy(&value, launch.variables, sizeof value);
    global(x) += value;
  });
}

void run_nothing(const LaunchContext&) {}

constexpr unsigned kPointer[] = {8};
constexpr unsigned kInt[] = {4};
constexpr unsigned kPointerInt[] = {8, 4};
constexpr unsigned kPointerFloatInt[] = {8, 4, 4};
constexpr float kInitialBias = 2;

constexpr KernelInfo kKernels[] = {
    {"add", 3, kPointerFloatInt, 0, run_add},
    {"block_sum", 1, kPointer, 0, run_block_sum},
    {"rotate_warp", 1, kPointer, 0, run_rotate_warp},
    {"count_even", 1, kPointer, 0, run_count_even},
    {"half_warp_shuffles", 0, nullptr, 0, run_half_warp_shuffles},
    {"half_block_waits", 0, nullptr, 0, run_half_block_waits},
    {"throws", 1, kInt, 0, run_throws},
    {"read_neighbour", 2, kPointerInt, 0, run_read_neighbour},
    {"add_variable", 1, kPointer, 0, run_add_variable},
    {"note_order", 1, kPointer, 0, run_note_order},
    {"big_shared", 0, nullptr, 40 << 10, run_nothing},
};
constexpr VariableInfo kVariables[] = {{"bias", sizeof(float), &kInitialBias, sizeof(float), 0}};
constexpr ModuleInfo kModule{
    "test", kKernels, std::size(kKernels), kVariables, std::size(kVariables), sizeof(float)};

const bool registered = [] {
  cusim_register_module(&kModule);
  void** handle = __cudaRegisterFatBinary(nullptr);
  for (Stub* stub :
       {&add, &block_sum, &rotate_warp, &count_even, &half_warp_shuffles, &half_block_waits,
        &throws, &read_neighbour, &add_variable, &note_order, &missing, &big_shared}) {
    __cudaRegisterFunction(handle, reinterpret_cast<const char*>(stub), nullptr, stub->name, -1,
                           nullptr, nullptr, nullptr, nullptr, nullptr);
  }
  __cudaRegisterVar(handle, reinterpret_cast<char*>(&bias), nullptr, "bias", 0, sizeof bias, 0, 0);
  __cudaRegisterFatBinaryEnd(handle);
  return true;
}();

}  // namespace

Gate::Gate(cudaStream_t stream) : open_(new std::atomic<bool>(false)) {
  const auto wait = [](void* argument) {
    const std::unique_ptr<std::atomic<bool>> open(static_cast<std::atomic<bool>*>(argument));
    while (!*open) std::this_thread::yield();
  };
  REQUIRE(cudaLaunchHostFunc(stream, wait, open_) == cudaSuccess);
}

void settle() {
  const TestStream stream;
  for (int i = 0; i < 500; ++i) REQUIRE(launch(big_shared, 1, 1, stream) == cudaSuccess);
  REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
}

void Gate::open() {
  if (open_) *open_ = true;
  open_ = nullptr;
}

}  // namespace cusim::testing
