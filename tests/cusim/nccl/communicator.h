// One rank's communicator: what stands behind ncclComm_t.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>
#include <nccl.h>

#include "nccl/clique.h"

namespace cusim {

/// Returns `result` and keeps `why` for ncclGetLastError of this thread.
ncclResult_t refuse(ncclResult_t result, const std::string& why);

[[nodiscard]] const std::string& last_error();

/// The part of a communicator that its operations on streams and in graphs share.
///
/// Host calls and the threads of streams meet here through relaxed atomics alone, so that
/// ThreadSanitizer sees no order between them that CUDA does not promise.
class Membership {
 public:
  Membership(std::shared_ptr<Clique> clique, int rank) : clique_(std::move(clique)), rank_(rank) {}

  /// Takes part in a collective, on the thread of its stream.
  void meet(const Collective& collective);

  /// Counts a collective of a graph that has been launched, until it has met.
  void launch() { launched_.fetch_add(1, std::memory_order_relaxed); }
  [[nodiscard]] bool has_launches() const { return launched_.load(std::memory_order_relaxed) > 0; }

  /// Counts an operation that exists, on a stream or in a graph.
  void add_operation() { operations_.fetch_add(1, std::memory_order_relaxed); }
  void remove_operation();
  /// Waits until no operation exists: streams have done theirs and graphs are destroyed.
  [[nodiscard]] bool wait_for_operations();
  [[nodiscard]] bool has_operations() const { return operations_ != 0; }

 private:
  std::shared_ptr<Clique> clique_;
  const int rank_;
  std::atomic<int> operations_{0};
  std::atomic<int> launched_{0};
  std::mutex mutex_;
  std::condition_variable none_;
};

}  // namespace cusim

/// Never freed, so that a handle used after its end is recognised.
struct ncclComm {
  ncclComm(std::shared_ptr<cusim::Clique> clique, int rank, int device, bool blocking);
  ncclComm(const ncclComm&) = delete;
  ncclComm& operator=(const ncclComm&) = delete;

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return clique_->size(); }
  [[nodiscard]] int device() const { return device_; }
  [[nodiscard]] bool blocking() const { return blocking_; }

  /// ncclSuccess when calls are allowed; else what they must return.
  ncclResult_t ready();
  /// Waits until all ranks are there; without blocking, polls tell.
  ncclResult_t start();
  /// Enqueues a collective, checked before; without blocking, a later poll does it.
  ncclResult_t submit(const char* call, const cusim::Collective& collective, cudaStream_t stream);
  /// The asynchronous state, as ncclCommGetAsyncError reports it. Without blocking, the first poll
  /// after a call finds it in progress and the second one does its work, so that a program which
  /// forgets to poll is found out.
  ncclResult_t poll();
  /// Puts the communicator into a failed state.
  void fail(ncclResult_t error) { error_ = error; }
  ncclResult_t finalize();
  ncclResult_t destroy();
  /// Callable from any thread. Like NCCL it returns only when graphs with collectives of this
  /// communicator are destroyed.
  ncclResult_t abort();

 private:
  enum class Life { kAlive, kFinalized, kAborted, kDestroyed };

  /// The error the communicator is in, ncclSuccess if none.
  ncclResult_t state();
  ncclResult_t run(std::function<ncclResult_t()> call);
  ncclResult_t enqueue(const char* call, cusim::Collective collective, cudaStream_t stream);
  ncclResult_t wait_for_operations(const char* call);

  const std::shared_ptr<cusim::Clique> clique_;
  const std::shared_ptr<cusim::Membership> membership_;
  const int rank_;
  const int device_;
  const bool blocking_;
  const bool mixing_;  ///< calls may be mixed with graph launches (NCCL_GRAPH_MIXING_SUPPORT)
  const std::chrono::steady_clock::time_point start_deadline_;
  std::atomic<bool> started_{false};  ///< all ranks have joined
  std::atomic<Life> life_{Life::kAlive};
  std::atomic<ncclResult_t> error_{ncclSuccess};         ///< of deferred calls, or injected; sticky
  std::uint64_t turns_ = 0;                              ///< calls that were not captured
  std::vector<std::function<ncclResult_t()>> deferred_;  ///< calls that returned ncclInProgress
  bool first_poll_ = false;
};
