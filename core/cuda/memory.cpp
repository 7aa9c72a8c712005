// Device memory and page-locked host memory.
#include <cstring>

#include "lockstep/core/cuda/backend.h"
#include "lockstep/core/cuda/runtime.h"
#include "lockstep/core/error.h"

namespace lockstep::cuda {
namespace {

/// Makes memory zero before anything else can be told of it.
void zero(Device device, void* memory, std::size_t bytes) {
  check(cudaMemset(memory, 0, bytes), device, "cudaMemset");
  check(cudaStreamSynchronize(cudaStreamLegacy), device, "cudaStreamSynchronize");
}

}  // namespace

std::size_t free_bytes(Device device) {
  const CurrentDevice current(device);
  std::size_t free = 0;
  std::size_t total = 0;
  check(cudaMemGetInfo(&free, &total), device, "cudaMemGetInfo");
  return free;
}

std::byte* allocate(Device device, std::size_t bytes, const std::string& purpose) {
  const CurrentDevice current(device);
  void* memory = nullptr;
  const cudaError_t status = cudaMalloc(&memory, bytes);
  if (status == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());
    throw DeviceError(message(device.to_string(), ": no memory for ", purpose,
                              ": cudaMalloc: ", bytes, " bytes wanted, ", free_bytes(device),
                              " free; use a smaller batch, more GPUs or --data-resident off"));
  }
  check(status, device, message("memory for ", purpose, ": cudaMalloc").c_str());
  try {
    zero(device, memory, bytes);
  } catch (...) {
    release(device, static_cast<std::byte*>(memory));
    throw;
  }
  return static_cast<std::byte*>(memory);
}

void release(Device device, std::byte* memory) noexcept {
  const CurrentDevice current(device, std::nothrow);
  note(cudaFree(memory), device, "cudaFree");
}

std::byte* allocate_pinned(Device device, std::size_t bytes, const std::string& purpose) {
  const CurrentDevice current(device);
  void* memory = nullptr;
  const cudaError_t status =
      cudaHostAlloc(&memory, bytes, cudaHostAllocPortable | cudaHostAllocMapped);
  if (status == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());
    throw DeviceError(message(device.to_string(), ": no page-locked host memory for ", purpose,
                              ": cudaHostAlloc: ", bytes,
                              " bytes wanted; raise the limit or use less data"));
  }
  check(status, device, message("host memory for ", purpose, ": cudaHostAlloc").c_str());
  std::memset(memory, 0, bytes);
  return static_cast<std::byte*>(memory);
}

void release_pinned(Device device, std::byte* memory) noexcept {
  const CurrentDevice current(device, std::nothrow);
  note(cudaFreeHost(memory), device, "cudaFreeHost");
}

std::byte* mapped_pointer(Device device, std::byte* pinned) {
  const CurrentDevice current(device);
  void* pointer = nullptr;
  check(cudaHostGetDevicePointer(&pointer, pinned, 0), device, "cudaHostGetDevicePointer");
  return static_cast<std::byte*>(pointer);
}

}  // namespace lockstep::cuda
