// Collectives between threads of one process, on host memory.
//
// Every call opens at a barrier, where each rank has posted its pointer and a signature of the
// call. A call that touches other ranks' memory closes at a second one. Abort can end the first,
// for all ranks or for none; once it is passed nothing throws before the second, so no rank unwinds
// and frees memory that another still reads.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

#include "lockstep/parallel/communicator.h"
#include "lockstep/parallel/thread_barrier.h"

namespace lockstep {

namespace {

/// Floats summed at once: a few of these stay in the first-level cache.
constexpr std::int64_t kSumBlock = 1024;

enum class Call { all_reduce, all_gather_host, broadcast_host, barrier };

/// What all ranks must agree on in a call.
struct Signature {
  Call call = Call::barrier;
  bool ordered = false;
  int root = 0;
  std::int64_t count = 0;  ///< floats or bytes

  friend bool operator==(const Signature&, const Signature&) = default;

  [[nodiscard]] const char* name() const {
    switch (call) {
      case Call::all_reduce:
        return "all_reduce";
      case Call::all_gather_host:
        return "all_gather_host";
      case Call::broadcast_host:
        return "broadcast_host";
      case Call::barrier:
        return "barrier";
    }
    return "";
  }

  [[nodiscard]] std::string to_string() const {
    switch (call) {
      case Call::all_reduce:
        return message(name(), "(", count, " floats, ", ordered ? "ordered)" : "any order)");
      case Call::all_gather_host:
        return message(name(), "(", count, " bytes)");
      case Call::broadcast_host:
        return message(name(), "(", count, " bytes from rank ", root, ")");
      case Call::barrier:
        break;
    }
    return message(name(), "()");
  }
};

/// What a rank lays open to the others for one call.
struct alignas(kAlignment) Post {
  Signature signature;
  void* data = nullptr;
};

/// What the ranks share.
struct Group {
  explicit Group(int size_in)
      : size(size_in), barrier(size_in), posts{make_posts(size_in), make_posts(size_in)} {}

  static std::vector<Post> make_posts(int size) {
    return std::vector<Post>(static_cast<std::size_t>(size));
  }

  const int size;
  ThreadBarrier barrier;
  std::atomic<int> left{-1};  ///< the first rank to destroy its communicator
  /// By turns: a rank may begin the next call while another still reads the posts of this one, but
  /// not the one after.
  std::vector<Post> posts[2];
};

/// out[i] = sum of in[r][begin + i] over r in [0, ranks), i < count, by the binary tree that splits
/// at the largest power of two. `scratch` holds kSumBlock floats for every level of the tree. `out`
/// may be none of the inputs.
void sum_tree(const float* const* in, int ranks, std::int64_t begin, std::int64_t count,
              float* __restrict__ out, float* scratch) {
  const auto at = [&](int rank) { return in[rank] + begin; };
  if (ranks == 2) {
    const float* __restrict__ a = at(0);
    const float* __restrict__ b = at(1);
    for (std::int64_t i = 0; i < count; ++i) out[i] = a[i] + b[i];
    return;
  }
  if (ranks == 4) {
    const float* __restrict__ a = at(0);
    const float* __restrict__ b = at(1);
    const float* __restrict__ c = at(2);
    const float* __restrict__ d = at(3);
    for (std::int64_t i = 0; i < count; ++i) out[i] = (a[i] + b[i]) + (c[i] + d[i]);
    return;
  }
  const int half = static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks - 1)));
  sum_tree(in, half, begin, count, out, scratch);
  const float* right = in[half] + begin;
  if (ranks - half > 1) {
    sum_tree(in + half, ranks - half, begin, count, scratch, scratch + kSumBlock);
    right = scratch;
  }
  const float* __restrict__ add = right;
  for (std::int64_t i = 0; i < count; ++i) out[i] += add[i];
}

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(std::shared_ptr<Group> group, int rank)
      : group_(std::move(group)),
        rank_(rank),
        inputs_(static_cast<std::size_t>(group_->size)),
        scratch_({}, kSumBlock * (1 + std::bit_width(static_cast<unsigned>(group_->size))),
                 "sums of the all-reduce") {}

  ~ThreadCommunicator() override {
    int nobody = -1;
    group_->left.compare_exchange_strong(nobody, rank_);
    group_->barrier.raise(ThreadBarrier::kLeft);
  }
  ThreadCommunicator(const ThreadCommunicator&) = delete;
  ThreadCommunicator& operator=(const ThreadCommunicator&) = delete;

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return group_->size; }

  void reserve(std::int64_t /*floats*/, bool /*ordered*/) override {}

  void finish_reductions(Context& /*context*/) override {}

  void check() override {
    if ((group_->barrier.flags() & ThreadBarrier::kAborted) == 0) return;
    throw CommAborted(message("rank ", rank_, ": another rank failed"));
  }

  void will_record(const std::shared_ptr<Graph>& /*graph*/) override {}

  void all_reduce(Context& /*context*/, float* data, std::int64_t count, bool ordered) override {
    const Signature signature{.call = Call::all_reduce, .ordered = ordered, .count = count};
    if (count < 0)
      throw UsageError(message("all_reduce: a count of ", count, "; it is at least 0"));
    const std::vector<Post>& posts = open(signature, data);
    if (size() > 1) {
      for (std::size_t r = 0; r < inputs_.size(); ++r) {
        inputs_[r] = static_cast<float*>(posts[r].data);
      }
      sum_share(count);
    }
    close();
  }

  void all_gather_host(const void* send, void* recv, std::size_t bytes) override {
    const Signature signature{.call = Call::all_gather_host,
                              .count = static_cast<std::int64_t>(bytes)};
    const std::vector<Post>& posts = open(signature, const_cast<void*>(send));
    auto* to = static_cast<std::byte*>(recv);
    for (const Post& post : posts) {
      if (bytes > 0 && post.data != to) std::memcpy(to, post.data, bytes);
      to += bytes;
    }
    close();
  }

  void broadcast_host(void* data, std::size_t bytes, int root) override {
    const Signature signature{
        .call = Call::broadcast_host, .root = root, .count = static_cast<std::int64_t>(bytes)};
    if (root < 0 || root >= size()) {
      throw UsageError(message("broadcast_host: root ", root, "; ranks are 0 to ", size() - 1));
    }
    const std::vector<Post>& posts = open(signature, data);
    if (rank_ != root && bytes > 0) {
      std::memcpy(data, posts[static_cast<std::size_t>(root)].data, bytes);
    }
    close();
  }

  void barrier() override { open({.call = Call::barrier}, nullptr); }

  void abort() noexcept override { group_->barrier.raise(ThreadBarrier::kAborted); }

 private:
  /// Posts this rank's part, waits for the others' and returns all of them. Throws on all ranks or
  /// on none, before any rank has touched another's data.
  const std::vector<Post>& open(const Signature& signature, void* data) {
    std::vector<Post>& posts = group_->posts[turn_];
    turn_ ^= 1U;
    posts[static_cast<std::size_t>(rank_)] = {signature, data};
    if (const std::uint32_t flags = group_->barrier.open(); flags != 0) fail(signature, flags);
    for (std::size_t r = 1; r < posts.size(); ++r) {
      if (posts[r].signature == posts[0].signature) continue;
      throw CommError(message(signature.name(), ": rank ", r, " called ",
                              posts[r].signature.to_string(), " while rank 0 called ",
                              posts[0].signature.to_string(),
                              "; all ranks must make the same calls in the same order"));
    }
    return posts;
  }

  /// Heeds no abort: a call that has opened succeeds on all ranks, so that no rank goes on with a
  /// result that another has not got. Replicas stay equal whatever fails.
  void close() { group_->barrier.close(); }

  [[noreturn]] void fail(const Signature& signature, std::uint32_t flags) const {
    if ((flags & ThreadBarrier::kAborted) != 0) {
      throw CommAborted(message(signature.name(), ": aborted on rank ", rank_,
                                " because another rank failed or the communicator was aborted"));
    }
    throw CommError(
        message(signature.name(), ": rank ", rank_, " waits in ", signature.to_string(),
                " but rank ", group_->left.load(),
                " is done and makes no more calls; all ranks must make the same calls"));
  }

  /// Sums this rank's share of the elements over all ranks and writes it to all of them.
  void sum_share(std::int64_t count) {
    const std::int64_t units = round_up(count, kAlignedFloats) / kAlignedFloats;
    const auto cut = [&](std::int64_t rank) {
      return std::min(count, units * rank / size() * kAlignedFloats);
    };
    float* total = scratch_.data();
    const std::int64_t end = cut(rank_ + 1);
    for (std::int64_t begin = cut(rank_); begin < end; begin += kSumBlock) {
      const std::int64_t block = std::min(kSumBlock, end - begin);
      sum_tree(inputs_.data(), size(), begin, block, total, total + kSumBlock);
      for (float* output : inputs_) {
        std::memcpy(output + begin, total, static_cast<std::size_t>(block) * sizeof(float));
      }
    }
  }

  std::shared_ptr<Group> group_;
  int rank_;
  unsigned turn_ = 0;
  std::vector<float*> inputs_;
  Arena scratch_;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> make_thread_communicators(int size) {
  if (size < 1) {
    throw UsageError(message("communicators: a group of ", size, " ranks; it has at least 1"));
  }
  const auto group = std::make_shared<Group>(size);
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (int rank = 0; rank < size; ++rank) {
    communicators.push_back(std::make_unique<ThreadCommunicator>(group, rank));
  }
  return communicators;
}

}  // namespace lockstep
