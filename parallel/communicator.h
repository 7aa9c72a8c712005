// Collectives between the replicas of a world.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/core/context.h"
#include "lockstep/core/error.h"
#include "lockstep/core/stream.h"

namespace lockstep {

/// The CommError of a call that ended because somebody aborted: a consequence, never the cause.
/// World tells the two apart by it and throws the cause.
class CommAborted : public CommError {
 public:
  using CommError::CommError;
};

/// One rank's end of a group of replicas. Every call but `abort` is collective: all ranks make the
/// same calls in the same order, each on its own thread. After an abort calls throw CommAborted;
/// where a rank makes another call than the rest, or has destroyed its communicator, they throw
/// CommError.
class Communicator {
 public:
  virtual ~Communicator() = default;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;

  /// Makes ready for reductions of up to `floats` floats; before the first one, and never between
  /// two of which the devices may still be at work.
  virtual void reserve(std::int64_t floats, bool ordered) = 0;

  /// data[i] = sum over ranks, `count` floats of device memory, in place. Begins when what the
  /// context has been given so far is done; what it is given next may run beside it, until
  /// finish_reductions. Equal bits on all ranks. With `ordered` the sum is the fixed binary tree
  /// over the rank numbers (neighbours first), else whatever order the communicator likes, the same
  /// for the same devices.
  virtual void all_reduce(Context& context, float* data, std::int64_t count, bool ordered) = 0;

  /// What the context is given from now on sees the sums of all reductions before.
  virtual void finish_reductions(Context& context) = 0;

  /// While waiting for a device: throws CommAborted or CommError when another rank or the
  /// connection has failed, so that the device will never get there.
  virtual void check() = 0;

  /// Reductions are about to be recorded in `graph`: it is cleared when the connection ends, which
  /// must not be outlived by them.
  virtual void will_record(const std::shared_ptr<Graph>& graph) = 0;

  /// Host memory: recv[r] = rank r's `bytes` bytes, for every rank.
  virtual void all_gather_host(const void* send, void* recv, std::size_t bytes) = 0;

  /// Host memory: everybody gets `root`'s bytes.
  virtual void broadcast_host(void* data, std::size_t bytes, int root) = 0;

  /// Returns when all ranks are there.
  virtual void barrier() = 0;

  /// Makes every pending and later call of every rank throw CommError. Any thread, any time.
  virtual void abort() noexcept = 0;
};

/// The communicators of `size` threads of this process on host memory; element r is rank r's. The
/// reduction is always the rank tree, each rank summing its share of the elements. No call
/// allocates. Throws UsageError for a size below 1.
[[nodiscard]] std::vector<std::unique_ptr<Communicator>> make_thread_communicators(int size);

}  // namespace lockstep
