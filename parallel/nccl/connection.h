// One rank's end of an NCCL communicator. Internal.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>

#include <nccl.h>

#include "lockstep/core/buffer.h"
#include "lockstep/core/context.h"
#include "lockstep/core/stream.h"

namespace lockstep::nccl {

using Deadline = std::chrono::steady_clock::time_point;

/// Throws CommError with NCCL's words for anything but success.
void check(ncclResult_t status, const char* what);

/// Used by the one thread that drives the replica. Everything is non-blocking: what NCCL has not
/// finished at once is asked for until it is done or `deadline` is over.
class Connection {
 public:
  /// Connects rank `rank` of `size`; all ranks at once. `interrupted` is asked while waiting and
  /// may throw.
  Connection(Device device, const ncclUniqueId& id, int rank, int size, Deadline deadline,
             const std::function<void()>& interrupted);
  /// Takes leave of the other ranks; or, after fail(), ends whatever is under way.
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Room for ordered reductions of up to `floats` floats.
  void reserve(std::int64_t floats);
  /// As Communicator's.
  void all_reduce(Context& context, float* data, std::int64_t count, bool ordered);
  void finish_reductions(Context& context);
  /// Throws CommError when NCCL reports that something went wrong behind our back.
  void check_health();
  void fail() { failed_ = true; }

 private:
  /// Waits until NCCL has done what a call began.
  void settle(ncclResult_t status, const char* what);

  Device device_;
  int size_;
  Context stream_;  ///< reductions run on it, beside the backward pass
  Event ready_;     ///< the gradients are there
  Event done_;      ///< the sums are there
  Buffer gathered_;
  ncclComm_t comm_ = nullptr;
  bool reducing_ = false;  ///< since the last finish_reductions
  bool failed_ = false;
};

}  // namespace lockstep::nccl
