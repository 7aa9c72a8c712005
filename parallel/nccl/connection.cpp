#include "lockstep/parallel/nccl/connection.h"

#include <string>
#include <thread>
#include <utility>

#include "lockstep/core/cuda/runtime.h"
#include "lockstep/core/error.h"
#include "lockstep/core/unheard.h"
#include "lockstep/kernels/reduce.h"

namespace lockstep::nccl {

namespace {

/// "CALL: NCCL says 'TEXT' (DETAILS)".
std::string text_of(ncclResult_t status, const char* call) {
  const char* details = ncclGetLastError(nullptr);
  return message(call, ": NCCL says '", ncclGetErrorString(status), "'",
                 details != nullptr && *details != '\0' ? message(" (", details, ")") : "");
}

[[noreturn]] void fail(ncclResult_t status, const char* call) {
  throw CommError(message(text_of(status, call), "; NCCL_DEBUG=INFO shows more"));
}

}  // namespace

void check(ncclResult_t status, const char* call) {
  if (status != ncclSuccess) fail(status, call);
}

Connection::Connection(Device device, const ncclUniqueId& id, Communicator& host,
                       std::chrono::seconds limit)
    : device_(device),
      size_(host.size()),
      limit_(limit),
      stream_(device),
      ready_(device),
      done_(device) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  try {
    settle(ncclCommInitRankConfig(&comm_, size_, id, host.rank(), &config),
           "connecting the GPUs: ncclCommInitRankConfig", host);
  } catch (...) {
    if (comm_ != nullptr) static_cast<void>(ncclCommAbort(comm_));
    throw;
  }
  connected_ = true;
}

Connection::~Connection() {
  if (comm_ == nullptr) return;
  // All ranks do this at once. What goes wrong now has nobody left to hear it.
  if (take_leave()) {
    note(ncclCommDestroy(comm_), "ncclCommDestroy");
  } else {
    abort();
  }
}

void Connection::abort() noexcept {
  note(ncclCommAbort(std::exchange(comm_, nullptr)), "ncclCommAbort");
}

void Connection::note(ncclResult_t status, const char* call) const noexcept {
  if (status == ncclSuccess) return;
  UnheardErrors::add("cuda:", device_.index, ": ", call, ": NCCL says '",
                     ncclGetErrorString(status), "'");
}

bool Connection::take_leave() noexcept {
  const auto deadline = std::chrono::steady_clock::now() + limit_;
  ncclResult_t status = ncclCommFinalize(comm_);
  while (status == ncclInProgress && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
    const ncclResult_t answer = ncclCommGetAsyncError(comm_, &status);
    if (answer != ncclSuccess) status = answer;
  }
  note(status, "ncclCommFinalize");
  return status == ncclSuccess;
}

void Connection::reserve(std::int64_t floats, bool ordered) {
  if (!ordered) return;
  const std::size_t bytes = static_cast<std::size_t>(floats * size_) * sizeof(float);
  if (bytes > gathered_.bytes()) gathered_ = Buffer(device_, bytes, "the gathered gradients");
  // A kernel's first launch loads it, which must not happen while a GPU waits in a reduction.
  sum_tree(stream_, gathered_.as<float>(), size_, floats, floats, gathered_.as<float>());
  stream_.synchronize();
}

void Connection::all_reduce(Context& context, Communicator& host, float* data, std::int64_t count,
                            bool ordered) {
  const Range range(context, "all-reduce");
  ready_.record(context);
  ready_.hold_up(stream_);
  reducing_ = true;
  const auto floats = static_cast<std::size_t>(count);
  cudaStream_t stream = cuda::stream_of(stream_);
  if (!ordered) {
    settle(ncclAllReduce(data, data, floats, ncclFloat, ncclSum, comm_, stream), "ncclAllReduce",
           host);
    return;
  }
  auto* gathered = gathered_.as<float>();
  settle(ncclAllGather(data, gathered, floats, ncclFloat, comm_, stream), "ncclAllGather", host);
  sum_tree(stream_, gathered, size_, count, count, data);
}

void Connection::finish_reductions(Context& context) {
  if (!reducing_) return;
  done_.record(stream_);
  done_.hold_up(context);
  reducing_ = false;
}

void Connection::check_health() {
  ncclResult_t status = ncclSuccess;
  check_call(ncclCommGetAsyncError(comm_, &status), "ncclCommGetAsyncError");
  if (status != ncclInProgress) check_call(status, "a reduction under way: ncclCommGetAsyncError");
}

void Connection::check_call(ncclResult_t status, const char* call) const {
  if (status == ncclSuccess) return;
  const std::string cause = cuda::earlier_failure();
  if (cause.empty()) fail(status, call);
  throw DeviceError(message(device_.to_string(), ": ", text_of(status, call), cause));
}

void Connection::settle(ncclResult_t status, const char* call, Communicator& host) {
  const auto deadline = std::chrono::steady_clock::now() + limit_;
  while (status == ncclInProgress) {
    try {
      host.check();
    } catch (const CommError&) {
      if (connected_) let_go();
      throw;
    }
    if (std::chrono::steady_clock::now() > deadline) {
      throw CommError(message(call, ": NCCL was not done within ", limit_.count(),
                              " s: another rank did not come, or the GPUs cannot reach each "
                              "other; NCCL_DEBUG=INFO shows where it waits"));
    }
    std::this_thread::yield();
    check_call(ncclCommGetAsyncError(comm_, &status), call);
  }
  check_call(status, call);
}

/// Gives NCCL a moment to finish what it began: it may be adding to a recording, which must not be
/// ended under its hands.
void Connection::let_go() noexcept {
  constexpr std::chrono::seconds kPatience{1};
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  ncclResult_t status = ncclInProgress;
  while (status == ncclInProgress && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
    if (ncclCommGetAsyncError(comm_, &status) != ncclSuccess) return;
  }
}

}  // namespace lockstep::nccl
