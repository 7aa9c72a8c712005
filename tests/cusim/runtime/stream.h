// Streams and events.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <cuda_runtime_api.h>

#include "runtime/live.h"
#include "runtime/queue.h"
#include "runtime/status.h"

namespace cusim {

struct Capture;

class Stream {
 public:
  Stream(int device, unsigned flags, bool legacy);
  /// Waits for all work.
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  [[nodiscard]] int device() const { return queue_.device(); }
  [[nodiscard]] bool legacy() const { return legacy_; }
  /// Whether the legacy stream and this one wait for each other.
  [[nodiscard]] bool blocking() const { return (flags_ & cudaStreamNonBlocking) == 0; }
  [[nodiscard]] unsigned flags() const { return flags_; }
  [[nodiscard]] std::uint64_t id() const { return queue_.id(); }

  /// Puts work behind what is there, legacy stream included.
  Ticket push(Operation operation);
  Ticket tail() { return queue_.tail(); }

  std::atomic<Capture*> capture{nullptr};

 private:
  void follow_legacy_rule();

  Queue& queue_;
  const unsigned flags_;
  const bool legacy_;
  std::mutex legacy_mutex_;
  std::uint64_t followed_ = 0;  ///< work of the legacy stream that this stream waits for already
};

/// The stream of a handle; throws Failure 400 when there is none.
Stream& resolve(cudaStream_t handle);

/// Puts an operation on a stream, or into the graph when the stream is capturing, and counts it.
/// Throws Failure.
void submit(Stream& stream, Operation operation);

/// Waits for the work of a stream so far; throws its device's sticky error.
void synchronize(Stream& stream);

}  // namespace cusim

struct CUstream_st : cusim::Stream {
  using Stream::Stream;
};

/// What a record of an event in a capture stands for: nodes of the graph with that number.
struct CapturedPoint {
  std::uint64_t capture;
  std::vector<std::size_t> nodes;
};

struct CUevent_st {
  using Time = std::chrono::steady_clock::time_point;

  const int device;
  const bool timed;
  std::mutex mutex{};                       ///< of all below
  cusim::Ticket ticket{};                   ///< of the last record
  std::shared_ptr<Time> time{};             ///< written when that record executes, if timed
  std::optional<CapturedPoint> captured{};  ///< the last record was in a capture
};
