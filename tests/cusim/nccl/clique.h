// The ranks of one communicator, and how they meet for a collective.
//
// A collective is an operation on each rank's stream. There, on the stream's thread, the ranks
// meet: the k-th collective of one rank is the k-th of all others (the last to come does the
// arithmetic for all). So it works the same from a stream and from a graph, and what would hang on
// a GPU (a rank that does not come) ends with an error after CUSIM_NCCL_TIMEOUT_MS (default 20000).
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <nccl.h>

namespace cusim {

enum class CollectiveKind { kAllReduce, kAllGather, kReduceScatter, kBroadcast };

/// What one rank brings to a collective.
struct Collective {
  CollectiveKind kind;
  const std::byte* send;
  std::byte* receive;
  std::size_t count;  ///< as in NCCL's call: per rank for all_gather and reduce_scatter
  ncclDataType_t type;
  ncclRedOp_t operation = ncclSum;
  int root = 0;
  bool captured = false;  ///< runs as a node of a graph
  /// Position among the calls of this rank that are not captured: they run in the order of the
  /// calls, whatever streams they are on.
  std::uint64_t turn = 0;

  [[nodiscard]] std::size_t send_count(std::size_t ranks) const {
    return kind == CollectiveKind::kReduceScatter ? count * ranks : count;
  }
  [[nodiscard]] std::size_t receive_count(std::size_t ranks) const {
    return kind == CollectiveKind::kAllGather ? count * ranks : count;
  }
};

/// How long any rank waits for others before it gives up.
[[nodiscard]] std::chrono::milliseconds wait_limit();

class Clique {
 public:
  explicit Clique(int ranks);

  [[nodiscard]] int size() const { return static_cast<int>(members_.size()); }

  /// Enters `rank` on `device`. ncclInvalidUsage when the rank or its device is there already;
  /// then the whole clique fails.
  ncclResult_t join(int rank, int device);
  /// ncclSuccess when all ranks have joined, ncclInProgress before, or why they cannot any more.
  ncclResult_t joined();
  /// Waits for all ranks; ncclSystemError when they do not come in time.
  ncclResult_t wait_joined();

  /// Takes part in the next collective, on the thread of the rank's stream. Returns when it is
  /// done or the rank has aborted (its buffer is then undefined: it gets NaN). Throws KernelError
  /// 719 when ranks disagree about the collective, do not come in time, or memory is not theirs.
  void meet(int rank, const Collective& collective);

  /// Frees the rank's waiting collectives; the other ranks keep waiting for it.
  void abort(int rank);

  /// The error that a collective of this rank ended with, ncclSuccess if none.
  [[nodiscard]] ncclResult_t error(int rank) const;

 private:
  struct Member {
    int device = -1;
    bool aborted = false;
    std::uint64_t met = 0;   ///< collectives begun
    std::uint64_t turn = 0;  ///< the call whose turn it is
    std::atomic<ncclResult_t> error{ncclSuccess};
  };
  /// One collective while ranks are in it.
  struct Round {
    std::vector<std::optional<Collective>> parts;
    int arrived = 0;
    int left = 0;
    bool done = false;
    ncclResult_t result = ncclSuccess;
    std::string failure;
  };
  using Lock = std::unique_lock<std::mutex>;

  Member& member(int rank) { return members_[static_cast<std::size_t>(rank)]; }
  void complete(Round& round);
  void execute(const Round& round) const;
  void finish(Round& round, ncclResult_t result, std::string failure);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Member> members_;
  std::map<std::uint64_t, Round> rounds_;
  int joined_ = 0;
  ncclResult_t join_error_ = ncclSuccess;
};

}  // namespace cusim
