// Allocation of device memory and pinned host memory.
#include "runtime/memory.h"

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <sstream>

#include "cusim.h"
#include "runtime/capture.h"
#include "runtime/device.h"
#include "runtime/settings.h"
#include "runtime/status.h"

namespace cusim {

namespace {

/// As of cudaMalloc, and of pages for pinned memory.
constexpr std::size_t kDeviceAlignment = 256;
constexpr std::size_t kPinnedAlignment = 4096;

/// Filled with NaN in the eyes of every floating-point type: nobody may rely on zeros.
std::uintptr_t allocate(std::size_t bytes, std::size_t alignment) {
  void* pointer = nullptr;
  if (posix_memalign(&pointer, alignment, bytes) != 0) throw std::bad_alloc();
  std::memset(pointer, 0xff, bytes);
  return reinterpret_cast<std::uintptr_t>(pointer);
}

void release(std::uintptr_t address) {
  std::free(reinterpret_cast<void*>(address));
}

/// Memory of the current device; null for 0 bytes.
void* take(std::size_t bytes) {
  forbid_while_capturing();
  raise_if_failed(current_device());
  if (bytes == 0) return nullptr;
  DeviceMemory& memory = device(current_device()).memory;
  const std::size_t before = memory.live_bytes.fetch_add(bytes);
  if (bytes > settings().memory_bytes || before > settings().memory_bytes - bytes) {
    memory.live_bytes -= bytes;
    fail(cudaErrorMemoryAllocation);
  }
  const std::uintptr_t address = allocate(bytes, kDeviceAlignment);
  memory.allocations.insert(address, bytes);
  account("device_bytes", static_cast<std::int64_t>(bytes));
  return device_pointer(address, current_device());
}

/// Frees what take() gave when the streams of its device have done their work.
void give_back(void* pointer) {
  forbid_while_capturing();
  const int owner = owning_device(pointer, 1);
  require(owner >= 0, cudaErrorInvalidValue);
  device(owner).wait_for_streams();
  DeviceMemory& memory = device(owner).memory;
  const std::uintptr_t address = untagged(pointer);
  const std::optional<AddressRange> range = memory.allocations.find(address, 1);
  require(range && range->begin == address, cudaErrorInvalidValue);
  memory.allocations.erase(address);
  const std::size_t bytes = range->end - range->begin;
  memory.live_bytes -= bytes;
  account("device_bytes", -static_cast<std::int64_t>(bytes));
  release(address);
  raise_if_failed(owner);
}

}  // namespace

void AllocationMap::insert(std::uintptr_t begin, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  ends_[begin] = begin + bytes;
}

void AllocationMap::erase(std::uintptr_t begin) {
  const std::lock_guard lock(mutex_);
  ends_.erase(begin);
}

std::optional<AddressRange> AllocationMap::find(std::uintptr_t address, std::size_t bytes) const {
  const std::shared_lock lock(mutex_);
  auto after = ends_.upper_bound(address);
  if (after == ends_.begin()) return std::nullopt;
  const auto [begin, end] = *std::prev(after);
  if (address >= end || bytes > end - address) return std::nullopt;
  return AddressRange{begin, end};
}

std::optional<AddressRange> DeviceMemory::find(std::uintptr_t address, std::size_t bytes) const {
  std::optional<AddressRange> found = allocations.find(address, bytes);
  return found ? found : variables.find(address, bytes);
}

AllocationMap& pinned_memory() {
  static AllocationMap& only = *new AllocationMap;
  return only;
}

void* device_pointer(std::uintptr_t address, int index) {
  const std::uintptr_t tag = settings().tag ? kTag | static_cast<std::uintptr_t>(index) << 48 : 0;
  return reinterpret_cast<void*>(address | tag);
}

int owning_device(const void* pointer, std::size_t bytes) {
  for (int index = 0; index < settings().devices; ++index) {
    if (device(index).memory.find(untagged(pointer), bytes)) return index;
  }
  return -1;
}

bool find_allocation(std::uintptr_t address, std::size_t bytes, int index, AddressRange* range) {
  std::optional<AddressRange> found = device(index).memory.find(address, bytes);
  if (!found) found = pinned_memory().find(address, bytes);
  if (found) *range = *found;
  return found.has_value();
}

std::byte* host_pointer(const void* pointer, std::size_t bytes, int index, const char* what) {
  AddressRange range;
  if (bytes > 0 && !find_allocation(untagged(pointer), bytes, index, &range)) {
    std::ostringstream text;
    text << what << ": " << bytes << " bytes at " << pointer
         << " are not inside one live allocation of device " << index;
    throw KernelError{cudaErrorIllegalAddress, text.str()};
  }
  return reinterpret_cast<std::byte*>(untagged(pointer));
}

bool may_allocate() {
  return result_of([] {
           require_callable();
           forbid_while_capturing();
         }) == cudaSuccess;
}

void* library_memory(std::size_t bytes) {
  void* memory = nullptr;
  return result_of([&] {
           require_callable();
           memory = take(bytes);
         }) == cudaSuccess
             ? memory
             : nullptr;
}

void free_library_memory(void* memory) {
  static_cast<void>(result_of([&] { give_back(memory); }));
}

}  // namespace cusim

using namespace cusim;

std::size_t cusim_live_bytes(int index) {
  return device(index).memory.live_bytes;
}

cudaError_t cudaMalloc(void** pointer, std::size_t bytes) {
  return api("cudaMalloc", [&] {
    count("mallocs");
    *pointer = nullptr;
    *pointer = take(bytes);
  });
}

cudaError_t cudaFree(void* pointer) {
  return release_api("cudaFree", [&] {
    if (!pointer) return;
    count("frees");
    give_back(pointer);
  });
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  return api("cudaMemGetInfo", [&] {
    raise_if_failed(current_device());
    *total = settings().memory_bytes;
    *free = *total - device(current_device()).memory.live_bytes;
  });
}

cudaError_t cudaHostAlloc(void** pointer, std::size_t bytes, unsigned) {
  return api("cudaHostAlloc", [&] {
    forbid_while_capturing();
    raise_if_failed(current_device());
    count("host_allocs");
    *pointer = nullptr;
    if (bytes == 0) return;
    const std::uintptr_t address = allocate(bytes, kPinnedAlignment);
    pinned_memory().insert(address, bytes);
    account("pinned_bytes", static_cast<std::int64_t>(bytes));
    *pointer = reinterpret_cast<void*>(address);
  });
}

cudaError_t cudaMallocHost(void** pointer, std::size_t bytes) {
  return cudaHostAlloc(pointer, bytes, cudaHostAllocDefault);
}

cudaError_t cudaFreeHost(void* pointer) {
  return release_api("cudaFreeHost", [&] {
    if (!pointer) return;
    forbid_while_capturing();
    for (int index = 0; index < settings().devices; ++index) device(index).wait_for_streams();
    const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(pointer);
    const std::optional<AddressRange> range = pinned_memory().find(address, 1);
    require(range && range->begin == address, cudaErrorInvalidValue);
    pinned_memory().erase(address);
    account("pinned_bytes", -static_cast<std::int64_t>(range->end - range->begin));
    release(address);
    raise_if_failed(current_device());
  });
}

cudaError_t cudaHostGetDevicePointer(void** mapped, void* host, unsigned) {
  return api("cudaHostGetDevicePointer", [&] {
    const bool pinned = pinned_memory().find(untagged(host), 1).has_value();
    require(pinned, cudaErrorInvalidValue);
    *mapped = host;
  });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  return api("cudaPointerGetAttributes", [&] {
    *attributes = {};
    attributes->device = owning_device(pointer, 1);
    void* const plain = const_cast<void*>(pointer);
    if (attributes->device >= 0) {
      attributes->type = cudaMemoryTypeDevice;
      attributes->devicePointer = plain;
    } else if (pinned_memory().find(untagged(pointer), 1)) {
      attributes->type = cudaMemoryTypeHost;
      attributes->device = current_device();
      attributes->devicePointer = plain;
      attributes->hostPointer = plain;
    } else {
      attributes->type = cudaMemoryTypeUnregistered;
      attributes->hostPointer = plain;
    }
  });
}
