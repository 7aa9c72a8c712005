#include "nccl/communicator.h"

#include <cstdlib>
#include <string_view>
#include <utility>

#include "runtime/device_api.h"

namespace cusim {
namespace {

thread_local std::string last_error_text;

bool mixing_support() {
  const char* text = std::getenv("NCCL_GRAPH_MIXING_SUPPORT");
  return !text || std::string_view(text) != "0";
}

/// Exists as long as an operation does: its copies are held by the operation's own copies.
class OperationCount {
 public:
  explicit OperationCount(std::shared_ptr<Membership> membership)
      : membership_(std::move(membership)) {
    membership_->add_operation();
  }
  ~OperationCount() { membership_->remove_operation(); }
  OperationCount(const OperationCount&) = delete;
  OperationCount& operator=(const OperationCount&) = delete;

 private:
  std::shared_ptr<Membership> membership_;
};

}  // namespace

ncclResult_t refuse(ncclResult_t result, const std::string& why) {
  last_error_text = why;
  return result;
}

const std::string& last_error() {
  return last_error_text;
}

void Membership::meet(const Collective& collective) {
  struct Landing {
    ~Landing() {
      if (captured) launched.fetch_sub(1, std::memory_order_relaxed);
    }
    const bool captured;
    std::atomic<int>& launched;
  };
  const Landing landing{collective.captured, launched_};
  clique_->meet(rank_, collective);
}

void Membership::remove_operation() {
  if (operations_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const std::lock_guard lock(mutex_);
  none_.notify_all();
}

bool Membership::wait_for_operations() {
  std::unique_lock lock(mutex_);
  return none_.wait_for(lock, wait_limit(), [this] { return !has_operations(); });
}

}  // namespace cusim

using cusim::refuse;

ncclComm::ncclComm(std::shared_ptr<cusim::Clique> clique, int rank, int device, bool blocking)
    : clique_(std::move(clique)),
      membership_(std::make_shared<cusim::Membership>(clique_, rank)),
      rank_(rank),
      device_(device),
      blocking_(blocking),
      mixing_(cusim::mixing_support()),
      start_deadline_(std::chrono::steady_clock::now() + cusim::wait_limit()) {
  cusim::account("nccl_communicators", 1);
}

ncclResult_t ncclComm::start() {
  if (!blocking_) return ncclInProgress;
  const ncclResult_t result = clique_->wait_joined();
  if (result != ncclSuccess) {
    return refuse(result,
                  "nccl: not all ranks came to create the communicator, or a rank or "
                  "device came twice (duplicate GPU)");
  }
  started_.store(true, std::memory_order_relaxed);
  return ncclSuccess;
}

ncclResult_t ncclComm::state() {
  switch (life_.load(std::memory_order_relaxed)) {
    case Life::kAborted:
      return refuse(ncclInternalError, "nccl: the communicator was aborted");
    case Life::kDestroyed:
      return refuse(ncclInvalidArgument, "nccl: the communicator was destroyed");
    default:
      break;
  }
  if (const ncclResult_t own = error_.load(std::memory_order_relaxed); own != ncclSuccess) {
    return refuse(own, "nccl: an earlier call failed, or an asynchronous error was injected");
  }
  const ncclResult_t collective = clique_->error(rank_);
  if (collective == ncclSuccess) return ncclSuccess;
  return refuse(collective, "nccl: a collective failed; the error of the device says why");
}

ncclResult_t ncclComm::ready() {
  if (const ncclResult_t result = state(); result != ncclSuccess) return result;
  if (life_ == Life::kFinalized) {
    return refuse(ncclInvalidUsage, "nccl: the communicator was finalized");
  }
  if (!started_.load(std::memory_order_relaxed) || !deferred_.empty()) {
    return refuse(ncclInvalidArgument,
                  "nccl: the communicator is used before its previous call has succeeded; poll "
                  "ncclCommGetAsyncError");
  }
  return ncclSuccess;
}

ncclResult_t ncclComm::poll() {
  if (const ncclResult_t result = state(); result != ncclSuccess) return result;
  if (!started_.load(std::memory_order_relaxed)) {
    ncclResult_t result = clique_->joined();
    const bool late = std::chrono::steady_clock::now() > start_deadline_;
    if (result == ncclInProgress && late) result = ncclSystemError;
    if (result == ncclSuccess) started_.store(true, std::memory_order_relaxed);
    return result;
  }
  if (deferred_.empty()) return ncclSuccess;
  if (first_poll_) {
    first_poll_ = false;
    return ncclInProgress;
  }
  for (const auto& call : std::exchange(deferred_, {})) {
    const ncclResult_t result = call();
    if (result != ncclSuccess) {
      error_ = result;
      return result;
    }
  }
  return ncclSuccess;
}

ncclResult_t ncclComm::run(std::function<ncclResult_t()> call) {
  if (blocking_) return call();
  deferred_.push_back(std::move(call));
  first_poll_ = true;
  return ncclInProgress;
}

ncclResult_t ncclComm::submit(const char* call, const cusim::Collective& collective,
                              cudaStream_t stream) {
  return run([this, call, collective, stream] { return enqueue(call, collective, stream); });
}

ncclResult_t ncclComm::enqueue(const char* call, cusim::Collective collective,
                               cudaStream_t stream) {
  collective.captured = cusim::capturing(stream);
  if (!collective.captured && !mixing_ && membership_->has_launches()) {
    return refuse(ncclInvalidUsage,
                  std::string(call) +
                      ": NCCL_GRAPH_MIXING_SUPPORT is 0, so no call may be made while a launched "
                      "graph has collectives of the communicator outstanding");
  }
  if (!collective.captured) collective.turn = turns_++;
  cusim::count("collectives");
  cusim::Operation operation{.kind = cusim::Kind::collective,
                             .name = call,
                             .run = [membership = membership_, collective,
                                     existence = std::make_shared<cusim::OperationCount>(
                                         membership_)] { membership->meet(collective); }};
  if (collective.captured) {
    operation.launched = [membership = membership_] { membership->launch(); };
  }
  const cudaError_t error = cusim::enqueue(stream, std::move(operation));
  if (error == cudaSuccess) return ncclSuccess;
  if (!collective.captured) --turns_;
  return refuse(ncclUnhandledCudaError, std::string(call) + ": " + cudaGetErrorString(error));
}

ncclResult_t ncclComm::wait_for_operations(const char* call) {
  if (membership_->wait_for_operations()) return ncclSuccess;
  cusim::count("nccl_hangs");
  return refuse(ncclInternalError,
                std::string(call) +
                    ": NCCL would hang here. Collectives are still waiting, or graphs with "
                    "collectives of this communicator exist: destroy them first");
}

ncclResult_t ncclComm::finalize() {
  if (const ncclResult_t result = ready(); result != ncclSuccess) return result;
  life_ = Life::kFinalized;
  return run([this] { return wait_for_operations("ncclCommFinalize"); });
}

ncclResult_t ncclComm::destroy() {
  const Life before = life_.exchange(Life::kDestroyed);
  if (before == Life::kAborted || before == Life::kDestroyed) {
    life_ = before;
    return refuse(ncclInvalidArgument, "ncclCommDestroy: the communicator is gone already");
  }
  cusim::account("nccl_communicators", -1);
  return wait_for_operations("ncclCommDestroy");
}

ncclResult_t ncclComm::abort() {
  const Life before = life_.exchange(Life::kAborted);
  if (before == Life::kAborted || before == Life::kDestroyed) {
    life_ = before;
    return refuse(ncclInvalidArgument, "ncclCommAbort: the communicator is gone already");
  }
  cusim::account("nccl_communicators", -1);
  clique_->abort(rank_);
  return wait_for_operations("ncclCommAbort");
}
