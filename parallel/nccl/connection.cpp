#include "lockstep/parallel/nccl/connection.h"

#include <thread>

#include "lockstep/core/cuda/runtime.h"
#include "lockstep/core/error.h"
#include "lockstep/kernels/reduce.h"

namespace lockstep::nccl {

void check(ncclResult_t status, const char* what) {
  if (status == ncclSuccess) return;
  const char* details = ncclGetLastError(nullptr);
  throw CommError(message(what, ": NCCL says '", ncclGetErrorString(status), "'",
                          details != nullptr && *details != '\0' ? message(" (", details, ")") : "",
                          "; NCCL_DEBUG=INFO shows more"));
}

Connection::Connection(Device device, const ncclUniqueId& id, int rank, int size, Deadline deadline,
                       const std::function<void()>& interrupted)
    : device_(device), size_(size), stream_(device), ready_(device), done_(device) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclResult_t status = ncclCommInitRankConfig(&comm_, size, id, rank, &config);
  try {
    while (status == ncclInProgress) {
      interrupted();
      if (std::chrono::steady_clock::now() > deadline) {
        throw CommError(message("connecting ", size, " GPUs by NCCL took too long on rank ", rank,
                                " (", device.to_string(),
                                "): another rank did not come, or the GPUs cannot reach each "
                                "other; NCCL_DEBUG=INFO shows where it waits"));
      }
      std::this_thread::yield();
      check(ncclCommGetAsyncError(comm_, &status), "connecting the GPUs");
    }
    check(status, "connecting the GPUs");
  } catch (...) {
    if (comm_ != nullptr) static_cast<void>(ncclCommAbort(comm_));
    throw;
  }
}

Connection::~Connection() {
  if (failed_) {
    static_cast<void>(ncclCommAbort(comm_));
    return;
  }
  // All ranks do this at once. What a leave-taking reports has nobody left to hear it.
  ncclResult_t status = ncclCommFinalize(comm_);
  while (status == ncclInProgress) {
    std::this_thread::yield();
    if (ncclCommGetAsyncError(comm_, &status) != ncclSuccess) break;
  }
  static_cast<void>(ncclCommDestroy(comm_));
}

void Connection::reserve(std::int64_t floats) {
  const std::size_t bytes = static_cast<std::size_t>(floats * size_) * sizeof(float);
  if (bytes > gathered_.bytes()) gathered_ = Buffer(device_, bytes, "the gathered gradients");
}

void Connection::all_reduce(Context& context, float* data, std::int64_t count, bool ordered) {
  const Range range(context, "all-reduce");
  ready_.record(context);
  ready_.hold_up(stream_);
  reducing_ = true;
  const auto floats = static_cast<std::size_t>(count);
  cudaStream_t stream = cuda::stream_of(stream_);
  if (!ordered) {
    settle(ncclAllReduce(data, data, floats, ncclFloat, ncclSum, comm_, stream), "all-reduce");
    return;
  }
  auto* gathered = gathered_.as<float>();
  settle(ncclAllGather(data, gathered, floats, ncclFloat, comm_, stream), "all-gather");
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
  check(ncclCommGetAsyncError(comm_, &status), "a reduction under way");
  if (status != ncclInProgress) check(status, "a reduction under way");
}

void Connection::settle(ncclResult_t status, const char* what) {
  while (status == ncclInProgress) {
    std::this_thread::yield();
    check(ncclCommGetAsyncError(comm_, &status), what);
  }
  check(status, what);
}

}  // namespace lockstep::nccl
