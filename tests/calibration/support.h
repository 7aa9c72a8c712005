// What the calibration shares. Its cases run unchanged on the simulated libraries and on the real
// ones and hold both to what NVIDIA documents: the headers' comments, the CUDA programming guide
// and the libraries' manuals. They assert nothing that is not written there: where a call must fail
// and no text says with which code, they ask for a failure (`refused`), and where a wrong call is
// undefined (a destroyed handle, a copy in the wrong direction) they do not make it.
#pragma once

#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>
#include <vector>

#include "calibration/kernels.h"
#include "cusim/tests/library_support.h"

namespace lockstep::calibration {

using cusim::test::Buffer;
using cusim::test::Graph;
using cusim::test::Stream;
using cusim::test::values;

/// The code as a number, and the thread's last error forgotten.
inline int code(cudaError_t error) {
  cudaGetLastError();
  return static_cast<int>(error);
}

/// Whether a call failed; its error forgotten.
inline bool refused(cudaError_t error) {
  return code(error) != cudaSuccess;
}

inline int device_count() {
  int count = 0;
  REQUIRE(cudaGetDeviceCount(&count) == cudaSuccess);
  return count;
}

class Event {
 public:
  explicit Event(unsigned flags = cudaEventDisableTiming) {
    REQUIRE(cudaEventCreateWithFlags(&event_, flags) == cudaSuccess);
  }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  operator cudaEvent_t() const { return event_; }  // NOLINT: it is the handle in all but name

 private:
  cudaEvent_t event_ = nullptr;
};

/// A stream that legacy work waits for and that waits for it.
class BlockingStream {
 public:
  BlockingStream() { REQUIRE(cudaStreamCreate(&stream_) == cudaSuccess); }
  ~BlockingStream() { cudaStreamDestroy(stream_); }
  BlockingStream(const BlockingStream&) = delete;
  BlockingStream& operator=(const BlockingStream&) = delete;
  operator cudaStream_t() const { return stream_; }  // NOLINT: it is the handle in all but name

 private:
  cudaStream_t stream_ = nullptr;
};

/// Pinned host memory.
class Pinned {
 public:
  explicit Pinned(std::size_t count) {
    REQUIRE(cudaMallocHost(&memory_, count * sizeof(float)) == cudaSuccess);
  }
  ~Pinned() { cudaFreeHost(memory_); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  [[nodiscard]] float* get() const { return static_cast<float*>(memory_); }

 private:
  void* memory_ = nullptr;
};

/// A host function that holds a stream up until the gate is opened. Nothing that waits for the
/// device (allocation, freeing, the first launch of a kernel) may be called meanwhile.
class Gate {
 public:
  explicit Gate(cudaStream_t stream) : stream_(stream) {
    REQUIRE(cudaLaunchHostFunc(stream, &Gate::hold, &open_) == cudaSuccess);
  }
  ~Gate() {
    open();
    cudaStreamSynchronize(stream_);  // open_ is read until then
  }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  void open() { open_ = true; }

 private:
  static void hold(void* open) {
    while (!*static_cast<std::atomic<bool>*>(open)) std::this_thread::yield();
  }

  std::atomic<bool> open_{false};
  cudaStream_t stream_;
};

/// Adds `value` to the first `count` elements on `stream`, by <<<>>>.
inline cudaError_t add(cudaStream_t stream, float* x, float value, int count = 1) {
  return launch_add_value(1, static_cast<unsigned>(count), stream, x, value, count);
}

/// |a - b| relative to |b|, both as wholes.
inline double difference(const std::vector<float>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double apart = 0;
  double norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    apart += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  return std::sqrt(apart / norm);
}

}  // namespace lockstep::calibration
