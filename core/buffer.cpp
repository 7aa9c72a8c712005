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

void release_host(std::byte* memory) noexcept {
  ::operator delete (memory, std::align_val_t{kAlignment});
}

}  // namespace

std::size_t free_device_memory(Device device) {
  if constexpr (kHasCuda) {
    if (device.kind == DeviceKind::cuda) return cuda::free_bytes(device);
  }
  return std::numeric_limits<std::size_t>::max();
}

Buffer::Buffer(Device device, std::size_t bytes, const std::string& purpose)
    : device_(device), bytes_(bytes) {
  if (bytes == 0) return;
  if constexpr (kHasCuda) {
    if (device.kind == DeviceKind::cuda) {
      data_ = cuda::allocate(device, bytes, purpose);
      return;
    }
  }
  data_ = allocate_host(device, bytes, purpose);
}

Buffer::~Buffer() {
  release();
}

Buffer::Buffer(Buffer&& other) noexcept
    : device_(other.device_),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this != &other) {
    release();
    device_ = other.device_;
    data_ = std::exchange(other.data_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
  }
  return *this;
}

void Buffer::release() noexcept {
  if (data_ == nullptr) return;
  if constexpr (kHasCuda) {
    if (device_.kind == DeviceKind::cuda) return cuda::release(device_, data_);
  }
  release_host(data_);
}

HostBuffer::HostBuffer(Device device, std::size_t bytes, const std::string& purpose)
    : device_(device), bytes_(bytes) {
  if (bytes == 0) return;
  if constexpr (kHasCuda) {
    if (device.kind == DeviceKind::cuda) {
      data_ = cuda::allocate_pinned(device, bytes, purpose);
      return;
    }
  }
  data_ = allocate_host(device, bytes, purpose);
}

HostBuffer::~HostBuffer() {
  release();
}

HostBuffer::HostBuffer(HostBuffer&& other) noexcept
    : device_(other.device_),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

HostBuffer& HostBuffer::operator=(HostBuffer&& other) noexcept {
  if (this != &other) {
    release();
    device_ = other.device_;
    data_ = std::exchange(other.data_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
  }
  return *this;
}

std::byte* HostBuffer::device_address() const {
  if constexpr (kHasCuda) {
    if (device_.kind == DeviceKind::cuda && data_ != nullptr) return cuda::mapped_pointer(data_);
  }
  return data_;
}

void HostBuffer::release() noexcept {
  if (data_ == nullptr) return;
  if constexpr (kHasCuda) {
    if (device_.kind == DeviceKind::cuda) return cuda::release_pinned(data_);
  }
  release_host(data_);
}

}  // namespace lockstep
