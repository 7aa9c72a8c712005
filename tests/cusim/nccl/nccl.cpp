// The simulated libnccl: collectives between the simulated devices of one process.
//
// Stricter than the real library where that finds mistakes: what would hang ends with an error
// (clique.h), a communicator that does not block works only when it is polled (communicator.h), a
// handle used after its end is refused. Calls that are not captured run in the order of the calls;
// the order between graph launches and them is the caller's duty.
//
// Sums are taken in the order of a ring (reduction.h), so nobody can rely on rank order.
//
// Counters: collectives (at the call), nccl_bytes (sent by all ranks, when they execute),
// nccl_hangs (ends of communicators that NCCL would wait for in vain).
// Faults: each function that returns a result is a point by its name ("ncclAllReduce@3=1").
// "ncclAllReduce:lost@3=1" (any collective) lets a rank's call succeed and never come.
// "ncclCommGetAsyncError@5=6" puts the communicator of the 5th poll into that asynchronous error.
#include <atomic>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include <nccl.h>
#include <unistd.h>

#include "nccl/communicator.h"
#include "nccl/group.h"
#include "nccl/reduction.h"
#include "runtime/device_api.h"

namespace cusim {
namespace {

/// All communicators and cliques ever made.
class Registry {
 public:
  static Registry& instance() {
    static auto& registry = *new Registry;
    return registry;
  }

  std::shared_ptr<Clique> clique(const std::string& id, int ranks) {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<Clique>& clique = cliques_[id];
    if (!clique) clique = std::make_shared<Clique>(ranks);
    return clique;
  }

  ncclComm* add(std::unique_ptr<ncclComm> communicator) {
    const std::lock_guard lock(mutex_);
    return *communicators_.insert(communicator.release()).first;
  }

  /// The communicator, or null for a handle that never was one.
  ncclComm* find(ncclComm_t handle) {
    const std::lock_guard lock(mutex_);
    return communicators_.contains(handle) ? handle : nullptr;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Clique>> cliques_;
  std::set<ncclComm*> communicators_;
};

/// Whether the call of this name must fail by an injected fault.
bool injected(const char* call, ncclResult_t* result) {
  int code = 0;
  if (!fault(call, &code)) return false;
  *result = refuse(static_cast<ncclResult_t>(code), std::string(call) + ": injected fault");
  return true;
}

std::string id_prefix() {
  return "cusim " + std::to_string(getpid()) + " ";
}

ncclResult_t join(const char* call, ncclComm_t* handle, int ranks, const ncclUniqueId& unique_id,
                  int rank, int device, bool blocking) {
  const std::string id(unique_id.internal, strnlen(unique_id.internal, sizeof unique_id.internal));
  if (!handle || ranks < 1 || rank < 0 || rank >= ranks) {
    return refuse(ncclInvalidArgument, std::string(call) + ": rank " + std::to_string(rank) +
                                           " of " + std::to_string(ranks));
  }
  if (id.rfind(id_prefix(), 0) != 0) {
    return refuse(ncclSystemError, std::string(call) +
                                       ": the id is not from ncclGetUniqueId of this process, and "
                                       "the simulated NCCL connects one process only");
  }
  const std::shared_ptr<Clique> clique = Registry::instance().clique(id, ranks);
  if (clique->size() != ranks) {
    return refuse(ncclInvalidArgument, std::string(call) + ": ranks differ about their number");
  }
  if (const ncclResult_t result = clique->join(rank, device); result != ncclSuccess) {
    return refuse(result, std::string(call) +
                              ": a rank or device came twice (duplicate GPU) in one communicator");
  }
  *handle = Registry::instance().add(std::make_unique<ncclComm>(clique, rank, device, blocking));
  return ncclSuccess;
}

ncclResult_t init_rank(const char* call, ncclComm_t* handle, int ranks, const ncclUniqueId& id,
                       int rank, bool blocking) {
  ncclResult_t result = ncclSuccess;
  if (injected(call, &result)) return fail_group(result);
  if (!may_allocate()) {
    return fail_group(refuse(ncclUnhandledCudaError,
                             std::string(call) + ": no usable device, or a capture is going on"));
  }
  const int device = current_device();
  result = join(call, handle, ranks, id, rank, device, blocking);
  return result == ncclSuccess ? start_in_group(**handle) : fail_group(result);
}

/// Whether two ranges of memory overlap, other than with `a` at distance `allowed` from `b`.
bool overlap(const std::byte* a, std::size_t a_bytes, const std::byte* b, std::size_t b_bytes,
             std::ptrdiff_t allowed) {
  return b < a + a_bytes && a < b + b_bytes && a - b != allowed;
}

ncclResult_t communicate(const char* call, ncclComm_t handle, CollectiveKind kind, const void* send,
                         void* receive, std::size_t count, ncclDataType_t type,
                         ncclRedOp_t operation, int root, cudaStream_t stream) {
  ncclResult_t result = ncclSuccess;
  if (injected(call, &result)) return fail_group(result);
  const auto no = [&](ncclResult_t error, const char* why) {
    return fail_group(refuse(error, std::string(call) + ": " + why));
  };
  ncclComm* communicator = Registry::instance().find(handle);
  if (!communicator) return no(ncclInvalidArgument, "no such communicator");
  if (result = communicator->ready(); result != ncclSuccess) return fail_group(result);

  const bool reduces = kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kReduceScatter;
  if (element_bytes(type) == 0 || (reduces && !can_reduce(type, operation))) {
    return no(ncclInvalidArgument, "the simulated NCCL does not know this type and operation");
  }
  if (root < 0 || root >= communicator->size()) return no(ncclInvalidArgument, "no such root");
  if (stream_device(stream) != communicator->device()) {
    return no(ncclInvalidUsage, "the stream is not on the communicator's device");
  }
  if (count == 0) return ncclSuccess;
  const Collective collective{.kind = kind,
                              .send = static_cast<const std::byte*>(send),
                              .receive = static_cast<std::byte*>(receive),
                              .count = count,
                              .type = type,
                              .operation = operation,
                              .root = root};
  const bool sends = kind != CollectiveKind::kBroadcast || root == communicator->rank();
  if (!receive || (sends && !send)) return no(ncclInvalidArgument, "null pointer");
  const auto ranks = static_cast<std::size_t>(communicator->size());
  const std::size_t bytes = element_bytes(type);
  const auto shift = static_cast<std::ptrdiff_t>(count * bytes) * communicator->rank();
  const std::ptrdiff_t in_place = kind == CollectiveKind::kAllGather       ? shift
                                  : kind == CollectiveKind::kReduceScatter ? -shift
                                                                           : 0;
  if (sends && overlap(collective.send, collective.send_count(ranks) * bytes, collective.receive,
                       collective.receive_count(ranks) * bytes, in_place)) {
    return no(ncclInvalidArgument, "the buffers overlap and are not in place");
  }
  int code = 0;
  if (fault((std::string(call) + ":lost").c_str(), &code)) return ncclSuccess;
  return submit_in_group(*communicator, call, collective, stream);
}

/// Calls `use(communicator)` unless a fault is injected or the handle is none.
template <class Use>
ncclResult_t with(const char* call, ncclComm_t handle, Use use) {
  ncclResult_t result = ncclSuccess;
  if (injected(call, &result)) return result;
  ncclComm* communicator = Registry::instance().find(handle);
  if (!communicator) {
    return refuse(ncclInvalidArgument, std::string(call) + ": no such communicator");
  }
  return use(*communicator);
}

/// The same for the end of a communicator, which comes even where a fault is injected.
template <class End>
ncclResult_t end_with(const char* call, ncclComm_t handle, End end) {
  ncclResult_t result = ncclSuccess;
  const bool fails = injected(call, &result);
  ncclComm* communicator = Registry::instance().find(handle);
  if (!communicator) {
    return refuse(ncclInvalidArgument, std::string(call) + ": no such communicator");
  }
  const ncclResult_t outcome = end(*communicator);
  return fails ? result : outcome;
}

/// Answers a question about a communicator.
template <class Answer>
ncclResult_t ask(const char* call, ncclComm_t handle, int* out, Answer answer) {
  return with(call, handle, [&](const ncclComm& communicator) {
    if (!out) return refuse(ncclInvalidArgument, std::string(call) + ": null pointer");
    *out = answer(communicator);
    return ncclSuccess;
  });
}

}  // namespace
}  // namespace cusim

using cusim::CollectiveKind;
using cusim::communicate;
using cusim::refuse;
using cusim::with;

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  ncclResult_t result = ncclSuccess;
  if (cusim::injected("ncclGetVersion", &result)) return result;
  if (!version) return refuse(ncclInvalidArgument, "ncclGetVersion: null pointer");
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  ncclResult_t result = ncclSuccess;
  if (cusim::injected("ncclGetUniqueId", &result)) return result;
  if (!id) return refuse(ncclInvalidArgument, "ncclGetUniqueId: null pointer");
  static std::atomic<int> made{0};
  std::memset(id->internal, 0, sizeof id->internal);
  std::snprintf(id->internal, sizeof id->internal, "%s%d", cusim::id_prefix().c_str(), ++made);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t* communicator, int ranks, ncclUniqueId id, int rank) {
  return cusim::init_rank("ncclCommInitRank", communicator, ranks, id, rank, true);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* communicator, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  constexpr unsigned kMagic = 0xcafebeef;
  if (config && (config->size != sizeof *config || config->magic != kMagic)) {
    return refuse(ncclInvalidArgument,
                  "ncclCommInitRankConfig: the config is not from NCCL_CONFIG_INITIALIZER");
  }
  const bool blocking = !config || config->blocking != 0;
  return cusim::init_rank("ncclCommInitRankConfig", communicator, ranks, id, rank, blocking);
}

ncclResult_t ncclCommInitAll(ncclComm_t* communicators, int count, const int* devices) {
  ncclResult_t result = ncclSuccess;
  if (cusim::injected("ncclCommInitAll", &result)) return result;
  int present = 0;
  if (cudaGetDeviceCount(&present) != cudaSuccess) {
    return refuse(ncclUnhandledCudaError, "ncclCommInitAll: no usable device");
  }
  if (!communicators || count < 1) {
    return refuse(ncclInvalidArgument, "ncclCommInitAll: no communicators asked for");
  }
  std::set<int> used;
  for (int rank = 0; rank < count; ++rank) {
    const int device = devices ? devices[rank] : rank;
    if (device < 0 || device >= present) {
      return refuse(ncclInvalidArgument,
                    "ncclCommInitAll: there is no device " + std::to_string(device));
    }
    if (!used.insert(device).second) {
      return refuse(ncclInvalidUsage,
                    "ncclCommInitAll: device " + std::to_string(device) + " is given twice");
    }
  }
  ncclUniqueId id;
  if (result = ncclGetUniqueId(&id); result != ncclSuccess) return result;
  for (int rank = 0; rank < count; ++rank) {
    result = cusim::join("ncclCommInitAll", &communicators[rank], count, id, rank,
                         devices ? devices[rank] : rank, true);
    if (result != ncclSuccess) return result;
  }
  for (int rank = 0; rank < count; ++rank) {
    if (result = communicators[rank]->start(); result != ncclSuccess) return result;
  }
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t handle) {
  return with("ncclCommFinalize", handle, [](ncclComm& it) { return it.finalize(); });
}

ncclResult_t ncclCommDestroy(ncclComm_t handle) {
  if (!handle) return ncclSuccess;
  return cusim::end_with("ncclCommDestroy", handle, [](ncclComm& it) { return it.destroy(); });
}

ncclResult_t ncclCommAbort(ncclComm_t handle) {
  if (!handle) return ncclSuccess;
  return cusim::end_with("ncclCommAbort", handle, [](ncclComm& it) { return it.abort(); });
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t handle, ncclResult_t* error) {
  ncclComm* communicator = cusim::Registry::instance().find(handle);
  if (!communicator || !error) {
    return refuse(ncclInvalidArgument, "ncclCommGetAsyncError: null pointer or no communicator");
  }
  int code = 0;
  if (cusim::fault("ncclCommGetAsyncError", &code)) {
    communicator->fail(static_cast<ncclResult_t>(code));
  }
  *error = communicator->poll();
  return ncclSuccess;
}

ncclResult_t ncclCommCount(ncclComm_t handle, int* count) {
  return cusim::ask("ncclCommCount", handle, count, [](const ncclComm& it) { return it.size(); });
}

ncclResult_t ncclCommUserRank(ncclComm_t handle, int* rank) {
  return cusim::ask("ncclCommUserRank", handle, rank, [](const ncclComm& it) { return it.rank(); });
}

ncclResult_t ncclCommCuDevice(ncclComm_t handle, int* device) {
  return cusim::ask("ncclCommCuDevice", handle, device,
                    [](const ncclComm& it) { return it.device(); });
}

ncclResult_t ncclAllReduce(const void* send, void* receive, size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t handle, cudaStream_t stream) {
  return communicate("ncclAllReduce", handle, CollectiveKind::kAllReduce, send, receive, count,
                     type, operation, 0, stream);
}

ncclResult_t ncclReduceScatter(const void* send, void* receive, size_t count, ncclDataType_t type,
                               ncclRedOp_t operation, ncclComm_t handle, cudaStream_t stream) {
  return communicate("ncclReduceScatter", handle, CollectiveKind::kReduceScatter, send, receive,
                     count, type, operation, 0, stream);
}

ncclResult_t ncclAllGather(const void* send, void* receive, size_t count, ncclDataType_t type,
                           ncclComm_t handle, cudaStream_t stream) {
  return communicate("ncclAllGather", handle, CollectiveKind::kAllGather, send, receive, count,
                     type, ncclSum, 0, stream);
}

ncclResult_t ncclBroadcast(const void* send, void* receive, size_t count, ncclDataType_t type,
                           int root, ncclComm_t handle, cudaStream_t stream) {
  return communicate("ncclBroadcast", handle, CollectiveKind::kBroadcast, send, receive, count,
                     type, ncclSum, root, stream);
}

ncclResult_t ncclGroupStart() {
  ncclResult_t result = ncclSuccess;
  if (cusim::injected("ncclGroupStart", &result)) return result;
  cusim::start_group();
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  ncclResult_t result = ncclSuccess;
  const bool fails = cusim::injected("ncclGroupEnd", &result);
  const ncclResult_t end = cusim::end_group();
  return fails ? result : end;
}

ncclResult_t ncclMemAlloc(void** pointer, size_t bytes) {
  ncclResult_t result = ncclSuccess;
  if (cusim::injected("ncclMemAlloc", &result)) return result;
  *pointer = cusim::library_memory(bytes);
  return *pointer ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t ncclMemFree(void* pointer) {
  ncclResult_t result = ncclSuccess;
  const bool fails = cusim::injected("ncclMemFree", &result);
  if (pointer) cusim::free_library_memory(pointer);
  return fails ? result : ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error";
    case ncclSystemError:
      return "unhandled system error";
    case ncclInternalError:
      return "internal error";
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
    default:
      return "unknown result code";
  }
}

const char* ncclGetLastError(ncclComm_t) {
  return cusim::last_error().c_str();
}

}  // extern "C"
