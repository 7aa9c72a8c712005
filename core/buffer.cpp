#include "lockstep/core/buffer.h"

#include <cstring>
#include <limits>
#include <new>
#include <utility>

#include "lockstep/config.h"
#include "lockstep/core/cuda/backend.h"
#include "lockstep/core/error.h"

namespace lockstep {

namespace {

std::byte* allocate_host(Device device, std::size_t bytes, const std::string& purpose) {
  auto* memory =
      static_cast<std::byte*>(::operator new (bytes, std::align_val_t{kAlignment}, std::nothrow));
  if (memory == nullptr) {
    throw DeviceError(message(device.to_string(), ": no memory for ", purpose, " (", bytes,
                              " bytes); use a smaller batch or fewer replicas"));
  }
  std::memset(memory, 0, bytes);
  return memory;
}

void release_host(Device /*device*/, std::byte* memory) noexcept {
  ::operator delete (memory, std::align_val_t{kAlignment});
}

}  // namespace

std::size_t free_device_memory(Device device) {
  if constexpr (kHasCuda) {
    if (device.kind == DeviceKind::cuda) return cuda::free_bytes(device);
  }
  return std::numeric_limits<std::size_t>::max();
}

OwnedMemory::OwnedMemory(OwnedMemory&& other) noexcept
    : device_(other.device_),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      release_(other.release_) {}

OwnedMemory& OwnedMemory::operator=(OwnedMemory&& other) noexcept {
  if (this != &other) {
    give_back();
    device_ = other.device_;
    data_ = std::exchange(other.data_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
    release_ = other.release_;
  }
  return *this;
}

Buffer::Buffer(Device device, std::size_t bytes, const std::string& purpose) {
  if (bytes == 0) return;
  if constexpr (kHasCuda) {
    if (device.kind == DeviceKind::cuda) {
      own(device, bytes, cuda::allocate(device, bytes, purpose), cuda::release);
      return;
    }
  }
  own(device, bytes, allocate_host(device, bytes, purpose), release_host);
}

HostBuffer::HostBuffer(Device device, std::size_t bytes, const std::string& purpose) {
  if (bytes == 0) return;
  if constexpr (kHasCuda) {
    if (device.kind == DeviceKind::cuda) {
      own(device, bytes, cuda::allocate_pinned(device, bytes, purpose), cuda::release_pinned);
      return;
    }
  }
  own(device, bytes, allocate_host(device, bytes, purpose), release_host);
}

std::byte* HostBuffer::device_address() const {
  if constexpr (kHasCuda) {
    if (device().kind == DeviceKind::cuda && data() != nullptr) {
      return cuda::mapped_pointer(device(), data());
    }
  }
  return data();
}

}  // namespace lockstep
