// Ranks of a communicator for tests: one device, stream and thread each.
#pragma once

#include <algorithm>
#include <deque>
#include <thread>
#include <vector>

#include <nccl.h>

#include "tests/library_support.h"

namespace cusim::test {

/// One rank's communicator, on a stream of its device.
struct Rank {
  int device;
  ncclComm_t communicator = nullptr;
  cudaStream_t stream = nullptr;
};

/// Calls `work(rank number)` on a thread per rank, with the rank's device current, and returns what
/// it returned.
template <class Ranks, class Work>
auto on_threads(const Ranks& ranks, Work work) {
  std::vector<decltype(work(0))> results(ranks.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    threads.emplace_back([&, rank] {
      cudaSetDevice(ranks[rank].device);
      results[rank] = work(static_cast<int>(rank));
    });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

/// A communicator of `count` ranks on devices first, first + 1, ..., made on this thread.
class World {
 public:
  explicit World(int count, int first = 0) {
    std::vector<int> devices;
    for (int rank = 0; rank < count; ++rank) devices.push_back(first + rank);
    std::vector<ncclComm_t> communicators(devices.size());
    REQUIRE(ncclCommInitAll(communicators.data(), count, devices.data()) == ncclSuccess);
    for (const int device : devices) {
      REQUIRE(cudaSetDevice(device) == cudaSuccess);
      Rank rank{.device = device, .communicator = communicators[ranks_.size()]};
      REQUIRE(cudaStreamCreateWithFlags(&rank.stream, cudaStreamNonBlocking) == cudaSuccess);
      ranks_.push_back(rank);
    }
  }
  ~World() {
    for (const Rank& rank : ranks_) {
      cudaSetDevice(rank.device);
      ncclCommAbort(rank.communicator);
      cudaStreamDestroy(rank.stream);
    }
    cudaSetDevice(0);
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  [[nodiscard]] std::size_t size() const { return ranks_.size(); }
  const Rank& operator[](std::size_t rank) const { return ranks_[rank]; }
  const Rank& operator[](int rank) const { return ranks_[static_cast<std::size_t>(rank)]; }

  /// `count` elements on each rank, from `make(rank)`.
  template <class T = float, class Make>
  [[nodiscard]] std::deque<Buffer<T>> buffers(Make make) const {
    std::deque<Buffer<T>> all;
    for (std::size_t rank = 0; rank < size(); ++rank) {
      REQUIRE(cudaSetDevice(ranks_[rank].device) == cudaSuccess);
      all.emplace_back(make(static_cast<int>(rank)));
    }
    return all;
  }
  /// Waits for all streams and returns their errors.
  [[nodiscard]] std::vector<cudaError_t> wait() const {
    std::vector<cudaError_t> errors;
    for (const Rank& rank : ranks_) errors.push_back(cudaStreamSynchronize(rank.stream));
    return errors;
  }

 private:
  std::vector<Rank> ranks_;
};

inline ncclResult_t async_error(ncclComm_t communicator) {
  ncclResult_t error = ncclSuccess;
  REQUIRE(ncclCommGetAsyncError(communicator, &error) == ncclSuccess);
  return error;
}

template <class T>
bool all_are(const std::vector<T>& values, const T& wanted) {
  return std::all_of(values.begin(), values.end(), [&](const T& v) { return v == wanted; });
}

}  // namespace cusim::test
