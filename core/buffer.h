// Device memory with one owner, and the arenas laid out in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "lockstep/core/device.h"

namespace lockstep {

/// Bytes to which every place in an arena is aligned: a cache line, and any vector register.
inline constexpr std::size_t kAlignment = 64;

/// Floats in one aligned unit.
inline constexpr std::int64_t kAlignedFloats = kAlignment / sizeof(float);

[[nodiscard]] constexpr std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// Bytes that can still be allocated on a CUDA device; on a CPU the largest number.
[[nodiscard]] std::size_t free_device_memory(Device device);

/// Memory with one owner. Movable, not copyable.
class OwnedMemory {
 public:
  OwnedMemory(OwnedMemory&& other) noexcept;
  OwnedMemory& operator=(OwnedMemory&& other) noexcept;
  OwnedMemory(const OwnedMemory&) = delete;
  OwnedMemory& operator=(const OwnedMemory&) = delete;

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  template <class T>
  [[nodiscard]] T* as() const {
    return reinterpret_cast<T*>(data_);
  }

 protected:
  using Release = void (*)(Device, std::byte*) noexcept;

  OwnedMemory() = default;
  ~OwnedMemory() { give_back(); }

  /// Takes `data`, which `release` frees. Owns nothing before.
  void own(Device device, std::size_t bytes, std::byte* data, Release release) {
    device_ = device;
    data_ = data;
    bytes_ = bytes;
    release_ = release;
  }
  [[nodiscard]] Device device() const { return device_; }

 private:
  void give_back() noexcept {
    if (data_ != nullptr) release_(device_, data_);
  }

  Device device_{};
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  Release release_ = nullptr;
};

/// Zeroed memory of one device, aligned to kAlignment, freed on destruction.
class Buffer : public OwnedMemory {
 public:
  Buffer() = default;
  /// Throws DeviceError naming `purpose` and the bytes when there is not enough memory.
  Buffer(Device device, std::size_t bytes, const std::string& purpose);
};

/// Zeroed host memory that a device's copies can use while the host goes on: page-locked and mapped
/// where the device is CUDA, plain otherwise.
class HostBuffer : public OwnedMemory {
 public:
  HostBuffer() = default;
  /// Throws DeviceError naming `purpose` and the bytes when there is not enough memory.
  HostBuffer(Device device, std::size_t bytes, const std::string& purpose);

  /// The address under which operations of any device of its kind read the same memory.
  [[nodiscard]] std::byte* device_address() const;
};

/// Where one tensor lies in an arena of floats.
struct Place {
  std::int64_t offset = 0;  ///< in floats, a multiple of kAlignedFloats
  std::int64_t count = 0;   ///< in floats, without padding
};

/// Hands out places one after another, each aligned; the size is known before memory is taken.
class ArenaLayout {
 public:
  Place add(std::int64_t count) {
    const Place place{size_, count};
    size_ = round_up(size_ + count, kAlignedFloats);
    return place;
  }
  /// Floats in all, padding included.
  [[nodiscard]] std::int64_t size() const { return size_; }

 private:
  std::int64_t size_ = 0;
};

/// One flat allocation of floats per replica and purpose. Padding is 0 and nothing writes to it.
class Arena {
 public:
  Arena() = default;
  Arena(Device device, std::int64_t floats, const std::string& purpose)
      : buffer_(device, static_cast<std::size_t>(floats) * sizeof(float), purpose), size_(floats) {}

  [[nodiscard]] float* data() const { return buffer_.as<float>(); }
  [[nodiscard]] float* at(Place place) const { return data() + place.offset; }
  [[nodiscard]] std::int64_t size() const { return size_; }

 private:
  Buffer buffer_;
  std::int64_t size_ = 0;
};

}  // namespace lockstep
