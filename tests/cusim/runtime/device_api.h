// What the simulated cuBLAS, cuDNN and NCCL see of the simulated CUDA runtime (libcudart).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>

#include <cuda_runtime_api.h>

#include "runtime/kernel_api.h"

namespace cusim {

/// Decides what an operation counts as, its kind in the trace and the type of its graph node.
enum class Kind { kernel, library, collective, memset, memcpy, host, event, wait, graph };

/// Work for a device. `run` is called on the stream's thread, each time the operation executes
/// (once per replay when it was captured), so it checks device pointers itself with host_pointer.
/// What it throws (KernelError) becomes the sticky error of the device.
struct Operation {
  Kind kind;
  std::string name;
  std::function<void()> run;
  bool always = false;               ///< runs on a failed device too; others are skipped there
  std::function<void()> launched{};  ///< of a captured operation: called at each cudaGraphLaunch
};

/// Puts an operation on a stream, or into the graph when the stream is capturing; counts it
/// (kernel, library, collective and memset in "calls"; also "launches", "library_calls",
/// "memsets"). Returns the error of a failed device or an illegal capture, also as the thread's
/// last error.
cudaError_t enqueue(cudaStream_t stream, Operation operation);

bool capturing(cudaStream_t stream);
/// The device of a stream (of the current device for the legacy stream); -1: no such stream.
int stream_device(cudaStream_t stream);
int current_device();

/// The host address of [pointer, pointer + bytes), which must lie in one live allocation that
/// `device` may use. Throws KernelError 700 with `what` in the message.
std::byte* host_pointer(const void* pointer, std::size_t bytes, int device, const char* what);

/// The same for `count` elements.
template <class T, class = std::enable_if_t<!std::is_void_v<T>>>
T* host_pointer(T* pointer, std::size_t count, int device, const char* what) {
  return reinterpret_cast<T*>(
      host_pointer(static_cast<const void*>(pointer), count * sizeof(T), device, what));
}

/// Counts the passage of a point; true when the call must fail with `*code` (CUSIM_FAULT,
/// cusim_set_fault).
bool fault(const char* point, int* code);

/// Adds to what is alive of a kind (cusim_ledger).
void account(const char* kind, std::int64_t by);

/// False while a capture forbids this thread to allocate, which also breaks the capture.
bool may_allocate();

/// Device memory for a library's own use, on the current device; null where cudaMalloc would fail.
/// No point and not counted: a library's allocations are not the program's calls.
void* library_memory(std::size_t bytes);
void free_library_memory(void* memory);

/// Adds to a counter, without ordering any memory access (ThreadSanitizer still sees the races of
/// the program under test).
void count(const char* name, std::uint64_t by = 1);

/// Marks a device as failed: every later call and synchronisation on it returns `code`. The first
/// failure stays.
void set_sticky(int device, int code, const char* message);

}  // namespace cusim
