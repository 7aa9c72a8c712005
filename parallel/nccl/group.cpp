// The group of a world's GPUs: connects them, and joins a run's host communicators with them.
#include "lockstep/parallel/nccl/group.h"

#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <stop_token>
#include <string_view>
#include <system_error>
#include <thread>

#include "lockstep/core/error.h"
#include "lockstep/core/unheard.h"
#include "lockstep/parallel/nccl/connection.h"

namespace lockstep::nccl {
namespace {

/// Graphs of one rank with reductions in them.
using Recorded = std::vector<std::weak_ptr<Graph>>;

/// Host calls go to the threads' communicator, reductions to the GPUs.
class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(Communicator& host, Connection& connection, Recorded& recorded)
      : host_(host), connection_(connection), recorded_(recorded) {}

  [[nodiscard]] int rank() const override { return host_.rank(); }
  [[nodiscard]] int size() const override { return host_.size(); }

  void reserve(std::int64_t floats, bool ordered) override {
    connection_.reserve(floats, ordered);
    host_.barrier();  // nobody allocates while another's devices wait for it in a reduction
  }
  void all_reduce(Context& context, float* data, std::int64_t count, bool ordered) override {
    connection_.all_reduce(context, host_, data, count, ordered);
  }
  void finish_reductions(Context& context) override { connection_.finish_reductions(context); }
  void check() override {
    host_.check();
    connection_.check_health();
  }
  void will_record(const std::shared_ptr<Graph>& graph) override {
    std::erase_if(recorded_, [](const std::weak_ptr<Graph>& other) { return other.expired(); });
    recorded_.push_back(graph);
  }

  void all_gather_host(const void* send, void* recv, std::size_t bytes) override {
    host_.all_gather_host(send, recv, bytes);
  }
  void broadcast_host(void* data, std::size_t bytes, int root) override {
    host_.broadcast_host(data, bytes, root);
  }
  void barrier() override { host_.barrier(); }

  void abort() noexcept override { host_.abort(); }

 private:
  Communicator& host_;
  Connection& connection_;
  Recorded& recorded_;
};

void warn_about_environment(const LogSink& log) {
  if (!log) return;
  for (const char* name : {"NCCL_NVLS_ENABLE", "NCCL_GRAPH_MIXING_SUPPORT"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && std::string_view(value) == "0") continue;
    log(LogLevel::warning,
        message("set ", name, "=0 before the program starts: without it ",
                std::string_view(name) == "NCCL_NVLS_ENABLE" ? "sums may differ from run to run"
                                                             : "every step has extra launches"));
  }
}

class Group final : public DeviceGroup {
 public:
  /// The threads that the end takes are started now, when that may still fail.
  Group(std::vector<Device> devices, std::chrono::seconds limit)
      : devices_(std::move(devices)),
        limit_(limit),
        recorded_(devices_.size()),
        connections_(devices_.size()),
        unheard_(devices_.size()) {
    for (std::size_t rank = 0; rank < devices_.size(); ++rank) {
      try {
        threads_.emplace_back([this, rank](const std::stop_token& stop) { await_end(stop, rank); });
      } catch (const std::system_error& error) {
        throw DeviceError(message("a group of GPUs: cannot start the thread that disconnects rank ",
                                  rank, ": ", error.what(), "; use fewer GPUs"));
      }
    }
  }

  /// All ends at once: NCCL's leave-taking is collective. It also waits for the graphs to go, and
  /// graphs under way wait for reductions, which after a failure only an abort ends.
  ~Group() override {
    if (!failed_) clear_graphs();
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    end_.notify_all();
    if (failed_) clear_graphs();
    for (std::jthread& thread : threads_) thread.join();
    for (const std::string& text : unheard_) {
      if (!text.empty()) UnheardErrors::add(text);
    }
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  [[nodiscard]] std::unique_ptr<Communicator> join(Communicator& host) override {
    const auto rank = static_cast<std::size_t>(host.rank());
    if (connections_[rank] == nullptr) connect(rank, host);
    return std::make_unique<NcclCommunicator>(host, *connections_[rank], recorded_[rank]);
  }

  void fail() noexcept override { failed_ = true; }

 private:
  void connect(std::size_t rank, Communicator& host) {
    ncclUniqueId id{};
    if (rank == 0) check(ncclGetUniqueId(&id), "the id of a group of GPUs: ncclGetUniqueId");
    host.broadcast_host(&id, sizeof id, 0);
    connections_[rank] = std::make_unique<Connection>(devices_[rank], id, host, limit_);
    host.barrier();
  }

  void clear_graphs() noexcept {
    for (const Recorded& graphs : recorded_) {
      for (const std::weak_ptr<Graph>& recorded : graphs) {
        if (const std::shared_ptr<Graph> graph = recorded.lock()) *graph = {};
      }
    }
  }

  /// Disconnects a rank at the end; does nothing for a group that could not be made.
  void await_end(const std::stop_token& stop, std::size_t rank) {
    {
      std::unique_lock lock(mutex_);
      if (!end_.wait(lock, stop, [this] { return ending_; })) return;
    }
    if (connections_[rank] == nullptr) return;
    const UnheardErrors unheard;
    disconnect(rank);
    unheard_[rank] = unheard.text();
  }

  void disconnect(std::size_t rank) noexcept {
    // Before any call of CUDA's, which may wait for what only the abort ends.
    if (failed_) connections_[rank]->abort();
    const CurrentDevice current(devices_[rank], std::nothrow);
    connections_[rank].reset();
  }

  std::vector<Device> devices_;
  std::chrono::seconds limit_;
  std::vector<Recorded> recorded_;  ///< by rank, and so is the next
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<std::string> unheard_;  ///< what failed while disconnecting
  bool failed_ = false;

  std::mutex mutex_;  ///< of the next
  bool ending_ = false;
  std::condition_variable_any end_;
  std::vector<std::jthread> threads_;  ///< goes first: they use all others
};

}  // namespace

std::unique_ptr<DeviceGroup> make_group(const std::vector<Device>& devices,
                                        std::chrono::seconds limit, const LogSink& log) {
  int version = 0;
  check(ncclGetVersion(&version), "ncclGetVersion");
  if (version < NCCL_VERSION_CODE) {
    throw DeviceError(message("NCCL: the library is version ", version,
                              ", older than that this build was made for (", NCCL_VERSION_CODE,
                              "); put the right libnccl.so.2 in front of the library path"));
  }
  warn_about_environment(log);
  return std::make_unique<Group>(devices, limit);
}

LibraryVersion library() {
  int version = 0;
  check(ncclGetVersion(&version), "NCCL");
  const auto text = [](int code) {
    return message(code / 10000, '.', code / 100 % 100, '.', code % 100);
  };
  return {.name = "NCCL",
          .built = text(NCCL_VERSION_CODE),
          .loaded = text(version),
          .files = mapped_files("libnccl")};
}

}  // namespace lockstep::nccl
