// Kernels written by hand against runtime/kernel_api.h, and helpers for tests of the runtime.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

#include "cusim.h"
#include "support/catch.h"

namespace cusim::testing {

/// What the program knows of a kernel: its address serves as nvcc's host stub.
struct Stub {
  const char* name;
};

extern Stub add;          ///< (float* x, float value, int count): x[i] += value
extern Stub block_sum;    ///< (int* out): sum of threadIdx.x over the block, by shared memory
extern Stub rotate_warp;  ///< (int* x): x[lane] of the next lane, by a shuffle
extern Stub count_even;   ///< (int* out): out[i] = 10 * threads with an even index + 1, by barriers
extern Stub half_warp_shuffles;  ///< (): a shuffle of a full warp that 16 lanes never reach
extern Stub half_block_waits;    ///< (): half of the threads stand at a warp barrier without peers
extern Stub throws;              ///< (int code): fails with that error
extern Stub read_neighbour;  ///< (int* out, int wait): out[i] = what thread i + 1 wrote to shared
                             ///< memory, after a barrier if `wait`
extern Stub add_variable;    ///< (float* x): x[0] += the __device__ variable `bias`
extern Stub note_order;      ///< (int* out): out[i] = when thread i of the grid ran, from 0 on
extern Stub missing;         ///< registered, but in no module
extern Stub big_shared;      ///< (): 40 KiB of static shared memory

/// The __device__ variable `bias` of the kernels, 2 at first on every device.
extern float bias;

template <class... Arguments>
cudaError_t launch(Stub& kernel, dim3 grid, dim3 block, cudaStream_t stream,
                   Arguments... arguments) {
  void* values[] = {&arguments..., nullptr};
  return cudaLaunchKernel(&kernel, grid, block, values, 0, stream);
}

/// Holds up a stream until it is opened, so that tests can look at what has not run yet.
class Gate {
 public:
  explicit Gate(cudaStream_t stream);
  ~Gate() { open(); }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  void open();

 private:
  std::atomic<bool>* open_;  ///< freed by the stream
};

/// Gives streams time to run what they wrongly would: right ones pass the test without it.
void settle();

/// An array on the current device.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(const std::vector<T>& values) : size_(values.size()) {
    REQUIRE(cudaMalloc(reinterpret_cast<void**>(&data_), bytes()) == cudaSuccess);
    REQUIRE(cudaMemcpy(data_, values.data(), bytes(), cudaMemcpyHostToDevice) == cudaSuccess);
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  [[nodiscard]] T* data() const { return data_; }
  [[nodiscard]] std::size_t bytes() const { return size_ * sizeof(T); }

  /// Waits for the device.
  [[nodiscard]] std::vector<T> values() const {
    std::vector<T> copy(size_);
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
    REQUIRE(cudaMemcpy(copy.data(), data_, bytes(), cudaMemcpyDeviceToHost) == cudaSuccess);
    return copy;
  }

 private:
  std::size_t size_;
  T* data_ = nullptr;
};

/// An array in pinned memory.
template <class T>
class PinnedArray {
 public:
  explicit PinnedArray(const std::vector<T>& values) {
    REQUIRE(cudaMallocHost(reinterpret_cast<void**>(&data_), values.size() * sizeof(T)) ==
            cudaSuccess);
    std::copy(values.begin(), values.end(), data_);
  }
  ~PinnedArray() { cudaFreeHost(data_); }
  PinnedArray(const PinnedArray&) = delete;
  PinnedArray& operator=(const PinnedArray&) = delete;

  [[nodiscard]] T* data() const { return data_; }
  T& operator[](std::size_t i) const { return data_[i]; }

 private:
  T* data_ = nullptr;
};

/// A stream of the current device.
class TestStream {
 public:
  explicit TestStream(unsigned flags = cudaStreamNonBlocking) {
    REQUIRE(cudaStreamCreateWithFlags(&stream_, flags) == cudaSuccess);
  }
  ~TestStream() { cudaStreamDestroy(stream_); }
  TestStream(const TestStream&) = delete;
  TestStream& operator=(const TestStream&) = delete;
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

/// An event of the current device.
class TestEvent {
 public:
  explicit TestEvent(unsigned flags = cudaEventDisableTiming) {
    REQUIRE(cudaEventCreateWithFlags(&event_, flags) == cudaSuccess);
  }
  ~TestEvent() { cudaEventDestroy(event_); }
  TestEvent(const TestEvent&) = delete;
  TestEvent& operator=(const TestEvent&) = delete;
  operator cudaEvent_t() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

/// The code and its number, and forgets the thread's last error.
inline int code(cudaError_t error) {
  cudaGetLastError();
  return static_cast<int>(error);
}

}  // namespace cusim::testing
