// One rank's end of an NCCL communicator. Internal.
#pragma once

#include <chrono>

#include <nccl.h>

#include "lockstep/core/buffer.h"
#include "lockstep/core/context.h"
#include "lockstep/core/stream.h"
#include "lockstep/parallel/communicator.h"

namespace lockstep::nccl {

/// Throws CommError with NCCL's words for anything but success.
void check(ncclResult_t status, const char* call);

/// Used by the one thread that drives the replica. Everything is non-blocking: what NCCL has not
/// finished at once is asked for until it is done, `host` says that another rank has failed, or
/// `limit` is over; then calls throw CommError.
class Connection {
 public:
  /// Connects the ranks of `host`; all at once.
  Connection(Device device, const ncclUniqueId& id, Communicator& host, std::chrono::seconds limit);
  /// Takes leave of the other ranks; or, after fail(), ends whatever is under way.
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// As Communicator's.
  void reserve(std::int64_t floats, bool ordered);
  /// As Communicator's.
  void all_reduce(Context& context, Communicator& host, float* data, std::int64_t count,
                  bool ordered);
  void finish_reductions(Context& context);
  /// Throws CommError when NCCL reports that something went wrong behind our back.
  void check_health();
  /// Ends whatever is under way; only destruction may follow.
  void abort() noexcept;

 private:
  /// As check(), but of a GPU that has failed, which makes NCCL's calls fail, throws DeviceError.
  void check_call(ncclResult_t status, const char* call) const;
  /// As check(), for destructors: UnheardErrors keeps the text.
  void note(ncclResult_t status, const char* call) const noexcept;
  /// Waits until NCCL has done what a call began.
  void settle(ncclResult_t status, const char* call, Communicator& host);
  /// Whether all ranks have said goodbye.
  [[nodiscard]] bool take_leave() noexcept;
  void let_go() noexcept;

  Device device_;
  int size_;
  std::chrono::seconds limit_;
  Context stream_;  ///< reductions run on it, beside the backward pass
  Event ready_;     ///< the gradients are there
  Event done_;      ///< the sums are there
  Buffer gathered_;
  ncclComm_t comm_ = nullptr;
  bool connected_ = false;
  bool reducing_ = false;  ///< since the last finish_reductions
};

}  // namespace lockstep::nccl
