// What a kernel module sees of the simulated CUDA runtime. A module is a shared library of kernels
// translated to C++; its static constructor calls cusim_register_module, and the runtime calls each
// kernel's `run` once per launch on the thread of the stream. Needs no CUDA header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace cusim {

/// CUSIM_TAG=1 hands out device pointers with this bit and the device in bits 48..55, so that the
/// host crashes when it dereferences one. Kernels mask with kAddressMask.
inline constexpr std::uint64_t kTag = std::uint64_t{1} << 62;
inline constexpr std::uint64_t kAddressMask = (std::uint64_t{1} << 47) - 1;
/// The device a tagged address belongs to.
inline constexpr int tagged_device(std::uint64_t address) {
  return static_cast<int>((address >> 48) & 0xff);
}

struct Dim3 {
  unsigned x, y, z;
};

/// Thrown by a kernel or another operation while it runs on a device: `code` is a cudaError_t and
/// becomes the sticky error of that device.
struct KernelError {
  int code;
  std::string message;
};

/// Addresses [begin, end) of one live allocation.
struct AddressRange {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};

/// Whether [address, address + bytes) lies in one live allocation that `device` may use (its own
/// memory, its variables, pinned host memory); fills `range` with that allocation. `address` is
/// without tag. The answer holds until the memory is freed, which waits for running kernels.
bool find_allocation(std::uintptr_t address, std::size_t bytes, int device, AddressRange* range);

/// One launch, as a kernel's `run` gets it.
struct LaunchContext {
  Dim3 grid;
  Dim3 block;
  std::size_t dynamic_shared_bytes;
  int device;
  void* const* arguments;  ///< one pointer per parameter, each 16-byte aligned
  std::byte* variables;    ///< the module's variables on this device, at VariableInfo::offset
  const char* kernel;      ///< mangled name, for messages
  unsigned seed;           ///< CUSIM_SEED; other than 0: threads of a block start in random order
  bool check;              ///< CUSIM_CHECK: look up every global access with find_allocation
};

struct KernelInfo {
  const char* name;  ///< mangled, as nvcc registers it
  int parameter_count;
  const unsigned* parameter_bytes;
  std::size_t static_shared_bytes;
  void (*run)(const LaunchContext&);
};

/// A __device__ or __constant__ variable; `initial` may be null (zeros).
struct VariableInfo {
  const char* name;
  std::size_t bytes;
  const void* initial;
  std::size_t initial_bytes;
  std::size_t offset;
};

struct ModuleInfo {
  const char* name;
  const KernelInfo* kernels;
  int kernel_count;
  const VariableInfo* variables;
  int variable_count;
  std::size_t variable_bytes;  ///< of the whole block of variables, on each device
};

struct Fiber;
struct Block;

/// What the lanes of a warp hand each other in a collective.
struct Warp {
  std::uint64_t value[32];
  std::uint64_t result[32];
  std::uint32_t mask[32];
  std::uint8_t source[32];
  std::uint32_t waiting;  ///< lanes that stand at a collective
};

struct Thread {
  Dim3 index;       ///< threadIdx
  unsigned linear;  ///< x + y * block.x + z * block.x * block.y
  unsigned lane;
  Warp* warp;
  Block* block;
  Fiber* fiber;
};

enum class WarpOperation { shuffle, ballot, any, all, sync };

/// The block that runs, and what its threads call. Threads of a block are fibers on one thread of
/// the host; blocks of a grid run one after another.
struct Block {
  const LaunchContext* launch;
  Dim3 index;  ///< blockIdx
  unsigned thread_count;
  std::byte* shared;         ///< static, then dynamic shared memory; NaN at the start of a block
  std::size_t shared_bytes;  ///< of both

  /// __syncthreads for the current thread; returns how many threads of the block passed true
  /// (__syncthreads_count). Threads that have returned from the kernel need not arrive.
  unsigned barrier(bool predicate = false);

  /// A warp collective of the current thread with all lanes in `mask`, each calling with the same
  /// mask: shuffle returns the value of lane `source`, ballot the mask of lanes with value != 0,
  /// any and all 0 or 1, sync 0. Throws KernelError when the caller or `source` is not in the mask.
  std::uint64_t warp(WarpOperation operation, std::uint32_t mask, std::uint64_t value,
                     unsigned source = 0);
};

/// The thread and block that run on this thread of the host; null outside kernels.
extern constinit thread_local Thread* current_thread __attribute__((tls_model("initial-exec")));
extern constinit thread_local Block* current_block __attribute__((tls_model("initial-exec")));

/// Runs body(argument) once per thread of the grid, with `shared_bytes` of shared memory per block.
/// Throws KernelError: what body throws, or 719 with a report when a block cannot go on.
void run_grid(const LaunchContext& launch, std::size_t shared_bytes, void (*body)(void*),
              void* argument);

template <class F>
void run_grid(const LaunchContext& launch, std::size_t shared_bytes, F body) {
  run_grid(
      launch, shared_bytes, [](void* f) { (*static_cast<F*>(f))(); }, &body);
}

}  // namespace cusim

/// Announces a module; it and all it points to must stay. Kernels and variables are found by name.
extern "C" void cusim_register_module(const cusim::ModuleInfo* module);
