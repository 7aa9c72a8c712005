#include "lockstep/core/buffer.h"

#include <cstring>
#include <new>
#include <utility>

#include "lockstep/core/error.h"

namespace lockstep {

Buffer::Buffer(Device device, std::size_t bytes, const std::string& purpose)
    : device_(device), bytes_(bytes) {
  if (bytes == 0) return;
  data_ =
      static_cast<std::byte*>(::operator new (bytes, std::align_val_t{kAlignment}, std::nothrow));
  if (data_ == nullptr) {
    throw DeviceError(message(device.to_string(), ": no memory for ", purpose, " (", bytes,
                              " bytes); use a smaller batch or fewer replicas"));
  }
  std::memset(data_, 0, bytes);
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
  ::operator delete (data_, std::align_val_t{kAlignment});
}

}  // namespace lockstep
