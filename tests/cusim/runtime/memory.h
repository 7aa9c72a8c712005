// Allocations of the devices and pinned memory of the host.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <shared_mutex>

#include <cuda_runtime_api.h>

#include "runtime/kernel_api.h"

namespace cusim {

/// Live allocations by address. Lookups take the lock shared, so they order nothing for
/// ThreadSanitizer.
class AllocationMap {
 public:
  void insert(std::uintptr_t begin, std::size_t bytes);
  /// Forgets the allocation that begins here.
  void erase(std::uintptr_t begin);
  /// The allocation that [address, address + bytes) lies in.
  [[nodiscard]] std::optional<AddressRange> find(std::uintptr_t address, std::size_t bytes) const;

 private:
  mutable std::shared_mutex mutex_;
  std::map<std::uintptr_t, std::uintptr_t> ends_;  ///< end by begin
};

/// The memory of one device.
struct DeviceMemory {
  /// The allocation or variable that [address, address + bytes) lies in.
  [[nodiscard]] std::optional<AddressRange> find(std::uintptr_t address, std::size_t bytes) const;

  AllocationMap allocations;  ///< of cudaMalloc
  AllocationMap variables;    ///< of modules
  std::atomic<std::size_t> live_bytes{0};
};

AllocationMap& pinned_memory();

inline std::uintptr_t untagged(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer) & kAddressMask;
}

/// The pointer the program gets: tagged when settings().tag.
void* device_pointer(std::uintptr_t address, int device);

/// The device that [pointer, pointer + bytes) was allocated on; -1 for host memory and unknown.
int owning_device(const void* pointer, std::size_t bytes);

/// Puts a copy on a stream by the rules of CUDA: pinned memory is read and written when the copy
/// executes; pageable memory is staged at the call, or waited for when it is written.
void copy(void* destination, const void* source, std::size_t bytes, cudaMemcpyKind direction,
          cudaStream_t stream, bool asynchronous);

}  // namespace cusim
