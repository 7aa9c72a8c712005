// The GPU that tests of CUDA code use, and memory on it. Their main (cuda_main.cpp) has made sure
// that there is one.
#pragma once

#include <cstddef>
#include <limits>
#include <type_traits>
#include <vector>

#include "lockstep/core/buffer.h"
#include "lockstep/core/context.h"
#include "lockstep/core/tensor.h"

namespace lockstep::test {

inline constexpr Device kGpu{DeviceKind::cuda, 0};

/// The GPU as the thread's current device, and a context on it.
struct Gpu {
  CurrentDevice current{kGpu};
  Context context{kGpu};
};

/// An array in the GPU's memory; of `values`, or of `count` elements that hold what no test
/// expects: NaN, or bytes of 0xEE.
template <class T>
class DeviceArray {
 public:
  DeviceArray(const Context& context, const std::vector<T>& values)
      : context_(context), count_(values.size()), buffer_(kGpu, bytes(), "a test") {
    upload(values);
  }
  DeviceArray(const Context& context, std::int64_t count)
      : DeviceArray(context, std::vector<T>(static_cast<std::size_t>(count), poison())) {}

  void upload(const std::vector<T>& values) {
    context_.copy_to_device(data(), values.data(), bytes());
    context_.synchronize();
  }
  [[nodiscard]] std::vector<T> download() const {
    std::vector<T> values(count_);
    context_.copy_to_host(values.data(), data(), bytes());
    context_.synchronize();
    return values;
  }
  [[nodiscard]] T* data() const { return buffer_.as<T>(); }
  /// All of it as a tensor.
  [[nodiscard]] View<T> view(const Shape& shape) const { return {data(), shape}; }

 private:
  [[nodiscard]] static T poison() {
    if constexpr (std::is_floating_point_v<T>) {
      return std::numeric_limits<T>::quiet_NaN();
    } else {
      return static_cast<T>(0xEE);
    }
  }
  [[nodiscard]] std::size_t bytes() const { return count_ * sizeof(T); }

  const Context& context_;
  std::size_t count_;
  Buffer buffer_;
};

/// One object in the GPU's memory.
template <class T>
class DeviceValue {
 public:
  DeviceValue(const Context& context, const T& value) : array_(context, std::vector<T>{value}) {}

  [[nodiscard]] T* data() const { return array_.data(); }
  [[nodiscard]] T download() const { return array_.download().front(); }
  void upload(const T& value) { array_.upload({value}); }

 private:
  DeviceArray<T> array_;
};

}  // namespace lockstep::test
