#include "nccl/clique.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "nccl/reduction.h"
#include "runtime/device_api.h"

namespace cusim {
namespace {

bool agree(const Collective& a, const Collective& b) {
  return a.kind == b.kind && a.count == b.count && a.type == b.type && a.operation == b.operation &&
         a.root == b.root;
}

/// NaN in every floating-point type.
void spoil(const Collective& part, std::size_t ranks, int device) {
  const std::size_t bytes = part.receive_count(ranks) * element_bytes(part.type);
  std::memset(host_pointer(part.receive, bytes, device, "nccl receive buffer"), 0xFF, bytes);
}

}  // namespace

std::chrono::milliseconds wait_limit() {
  const char* text = std::getenv("CUSIM_NCCL_TIMEOUT_MS");
  return std::chrono::milliseconds(text ? std::strtol(text, nullptr, 10) : 20000);
}

Clique::Clique(int ranks) : members_(static_cast<std::size_t>(ranks)) {}

ncclResult_t Clique::join(int rank, int device) {
  const Lock lock(mutex_);
  const bool taken = member(rank).device >= 0 ||
                     std::any_of(members_.begin(), members_.end(),
                                 [&](const Member& other) { return other.device == device; });
  if (taken) {
    join_error_ = ncclInvalidUsage;
  } else {
    member(rank).device = device;
    ++joined_;
  }
  changed_.notify_all();
  return join_error_;
}

ncclResult_t Clique::joined() {
  const Lock lock(mutex_);
  if (join_error_ != ncclSuccess) return join_error_;
  return joined_ == size() ? ncclSuccess : ncclInProgress;
}

ncclResult_t Clique::wait_joined() {
  Lock lock(mutex_);
  const bool came = changed_.wait_for(
      lock, wait_limit(), [this] { return joined_ == size() || join_error_ != ncclSuccess; });
  if (!came) join_error_ = ncclSystemError;
  changed_.notify_all();
  return join_error_;
}

void Clique::meet(int rank, const Collective& collective) {
  Member& self = member(rank);
  const auto deadline = std::chrono::steady_clock::now() + wait_limit();
  Lock lock(mutex_);
  if (!collective.captured) {
    const bool came = changed_.wait_until(
        lock, deadline, [&] { return self.turn == collective.turn || self.aborted; });
    if (!came) {
      self.error = ncclInternalError;
      throw KernelError{cudaErrorLaunchFailure,
                        "nccl: rank " + std::to_string(rank) +
                            " waited in vain for its own earlier call on another stream"};
    }
    self.turn = collective.turn + 1;
    changed_.notify_all();
  }
  if (self.aborted) return spoil(collective, members_.size(), self.device);

  const std::uint64_t number = self.met++;
  Round& round = rounds_[number];
  if (!round.done) {
    round.parts.resize(members_.size());
    round.parts[static_cast<std::size_t>(rank)] = collective;
    if (++round.arrived == size()) {
      complete(round);
    } else {
      changed_.wait_until(lock, deadline, [&] { return round.done || self.aborted; });
    }
  }
  if (!round.done && self.aborted) {
    --round.arrived;  // and so it never completes: the rank's buffers may be gone
    return spoil(collective, members_.size(), self.device);
  }
  if (!round.done) {
    finish(round, ncclRemoteError,
           "nccl: " + std::to_string(size() - round.arrived) + " of " + std::to_string(size()) +
               " ranks did not come to a collective of " + std::to_string(collective.count) +
               " elements in time");
  }
  if (round.result != ncclSuccess) self.error = round.result;
  const std::string failure = round.failure;
  if (++round.left == size()) rounds_.erase(number);
  if (!failure.empty()) throw KernelError{cudaErrorLaunchFailure, failure};
}

void Clique::finish(Round& round, ncclResult_t result, std::string failure) {
  round.result = result;
  round.failure = std::move(failure);
  round.done = true;
  changed_.notify_all();
}

void Clique::complete(Round& round) {
  const Collective& first = *round.parts.front();
  for (const auto& part : round.parts) {
    if (!agree(first, *part)) {
      return finish(round, ncclInvalidUsage,
                    "nccl: ranks disagree about a collective: its kind, count, type, operation or "
                    "root (counts " +
                        std::to_string(first.count) + " and " + std::to_string(part->count) + ")");
    }
    if (first.captured != part->captured) {
      return finish(round, ncclInvalidUsage,
                    "nccl: a collective was captured by some ranks and not by others");
    }
  }
  try {
    execute(round);
    finish(round, ncclSuccess, "");
  } catch (const KernelError& error) {
    finish(round, ncclUnhandledCudaError, error.message);
  }
}

void Clique::execute(const Round& round) const {
  const std::size_t ranks = members_.size();
  const Collective& first = *round.parts.front();
  const std::size_t bytes = first.count * element_bytes(first.type);
  std::vector<const std::byte*> sources(ranks);
  std::vector<std::byte*> targets(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const Collective& part = *round.parts[rank];
    const std::size_t unit = element_bytes(part.type);
    const bool sends =
        part.kind != CollectiveKind::kBroadcast || part.root == static_cast<int>(rank);
    if (sends) {
      sources[rank] = host_pointer(part.send, part.send_count(ranks) * unit, members_[rank].device,
                                   "nccl send buffer");
      count("nccl_bytes", part.send_count(ranks) * unit);
    }
    targets[rank] = host_pointer(part.receive, part.receive_count(ranks) * unit,
                                 members_[rank].device, "nccl receive buffer");
  }

  // Buffers may be the same in place, so the result is made apart and copied.
  std::vector<std::byte> result;
  const auto deliver_all = [&] {
    for (std::byte* target : targets) std::memcpy(target, result.data(), result.size());
  };
  switch (first.kind) {
    case CollectiveKind::kAllReduce:
      result.resize(bytes);
      reduce_in_pieces(first.type, first.operation, sources, first.count, result.data());
      return deliver_all();
    case CollectiveKind::kAllGather:
      for (const std::byte* source : sources) result.insert(result.end(), source, source + bytes);
      return deliver_all();
    case CollectiveKind::kBroadcast: {
      const std::byte* source = sources[static_cast<std::size_t>(first.root)];
      result.assign(source, source + bytes);
      return deliver_all();
    }
    case CollectiveKind::kReduceScatter:
      result.resize(bytes * ranks);
      // Piece p of whole buffers is what rank p receives.
      reduce_in_pieces(first.type, first.operation, sources, first.count * ranks, result.data());
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        std::memcpy(targets[rank], result.data() + rank * bytes, bytes);
      }
  }
}

void Clique::abort(int rank) {
  const Lock lock(mutex_);
  member(rank).aborted = true;
  changed_.notify_all();
}

ncclResult_t Clique::error(int rank) const {
  return members_[static_cast<std::size_t>(rank)].error.load(std::memory_order_relaxed);
}

}  // namespace cusim
