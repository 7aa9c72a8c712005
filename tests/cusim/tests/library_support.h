// What the tests of the simulated libraries share: memory, streams, graphs, reproducible values.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

#include "cusim.h"
#include "support/catch.h"

namespace cusim::test {

/// `count` numbers of (-1, 1) of various magnitudes, so that sums round; the same for the same
/// seed.
inline std::vector<float> values(std::size_t count, unsigned seed) {
  std::vector<float> result(count);
  unsigned state = seed * 7919U + 1;
  for (float& value : result) {
    state = state * 1664525U + 1013904223U;
    const float even = static_cast<float>(state >> 8) / static_cast<float>(1 << 23) - 1;
    value = even * even * even;
  }
  return result;
}

/// Whether the current device rounds to TF32 where that is allowed: Turing does not.
inline bool device_has_tf32() {
  int device = 0;
  int major = 0;
  REQUIRE(cudaGetDevice(&device) == cudaSuccess);
  REQUIRE(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess);
  return major >= 8;
}

/// What is alive of a kind, see cusim_ledger.
inline std::int64_t alive(const std::string& kind) {
  std::vector<cusim_tally> all(cusim_ledger(nullptr, 0));
  cusim_ledger(all.data(), all.size());
  for (const cusim_tally& entry : all) {
    if (entry.name == kind) return entry.value;
  }
  return 0;
}

/// Elements in the memory of the device that is current when it is made.
template <class T>
class Buffer {
 public:
  explicit Buffer(const std::vector<T>& elements) : count_(elements.size()) {
    REQUIRE(cudaMalloc(&memory_, count_ * sizeof(T)) == cudaSuccess);
    REQUIRE(cudaMemcpy(memory_, elements.data(), count_ * sizeof(T), cudaMemcpyHostToDevice) ==
            cudaSuccess);
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  }
  explicit Buffer(std::size_t count) : Buffer(std::vector<T>(count)) {}
  ~Buffer() { cudaFree(memory_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  [[nodiscard]] T* get() const { return static_cast<T*>(memory_); }

  [[nodiscard]] std::vector<T> read() const {
    std::vector<T> elements(count_);
    REQUIRE(cudaMemcpy(elements.data(), memory_, count_ * sizeof(T), cudaMemcpyDeviceToHost) ==
            cudaSuccess);
    return elements;
  }

 private:
  void* memory_ = nullptr;
  std::size_t count_;
};

class Stream {
 public:
  Stream() { REQUIRE(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking) == cudaSuccess); }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  operator cudaStream_t() const { return stream_; }  // NOLINT: it is the handle in all but name
  [[nodiscard]] cudaError_t wait() const { return cudaStreamSynchronize(stream_); }

 private:
  cudaStream_t stream_ = nullptr;
};

/// What `work` puts on a stream, captured.
class Graph {
 public:
  Graph(cudaStream_t stream, const std::function<void()>& work) {
    REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
    work();
    cudaGraph_t graph = nullptr;
    REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
    REQUIRE(cudaGraphInstantiate(&exec_, graph, 0) == cudaSuccess);
    REQUIRE(cudaGraphDestroy(graph) == cudaSuccess);
  }
  ~Graph() { cudaGraphExecDestroy(exec_); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  [[nodiscard]] cudaError_t launch(cudaStream_t stream) const {
    return cudaGraphLaunch(exec_, stream);
  }

 private:
  cudaGraphExec_t exec_ = nullptr;
};

}  // namespace cusim::test
