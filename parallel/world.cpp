// The threads of a world: they sleep between runs, and the first failure of a run is its outcome.
#include "lockstep/parallel/world.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/pinned_thread.h"
#include "lockstep/core/unheard.h"
#include "lockstep/parallel/device_group.h"

namespace lockstep {

namespace {

template <class E>
[[noreturn]] void throw_as(const std::string& text) {
  throw E(text);
}

/// How near to the cause: a GPU that fails makes reductions fail on other ranks, and any failure
/// aborts the rest.
enum class Nearness { aborted, communication, cause };

/// What a rank threw, as text and type: exception objects stay on the thread that threw them.
struct Failure {
  int rank = 0;
  Nearness nearness = Nearness::cause;
  void (*raise)(const std::string&) = nullptr;
  std::string text;
};

/// The exception being handled.
Failure current_failure(int rank) {
  try {
    throw;
  } catch (const CommAborted& error) {
    return {rank, Nearness::aborted, &throw_as<CommAborted>, error.what()};
  } catch (const UsageError& error) {
    return {rank, Nearness::cause, &throw_as<UsageError>, error.what()};
  } catch (const ShapeError& error) {
    return {rank, Nearness::cause, &throw_as<ShapeError>, error.what()};
  } catch (const DataError& error) {
    return {rank, Nearness::cause, &throw_as<DataError>, error.what()};
  } catch (const IoError& error) {
    return {rank, Nearness::cause, &throw_as<IoError>, error.what()};
  } catch (const DeviceError& error) {
    return {rank, Nearness::cause, &throw_as<DeviceError>, error.what()};
  } catch (const CommError& error) {
    return {rank, Nearness::communication, &throw_as<CommError>, error.what()};
  } catch (const NonFiniteError& error) {
    return {rank, Nearness::cause, &throw_as<NonFiniteError>, error.what()};
  } catch (const std::exception& error) {
    return {rank, Nearness::cause, &throw_as<Error>, error.what()};
  } catch (...) {
    return {rank, Nearness::cause, &throw_as<Error>,
            "something that is no std::exception was thrown"};
  }
}

/// One kind of device, and no GPU twice.
void check_devices(const std::vector<Device>& devices) {
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (devices[i].kind != devices[0].kind) {
      throw UsageError(message("world: ", devices[0].to_string(), " and ", devices[i].to_string(),
                               " do not train together; name devices of one kind"));
    }
    if (devices[i].kind == DeviceKind::cpu) continue;
    for (std::size_t j = 0; j < i; ++j) {
      if (devices[j] == devices[i]) {
        throw UsageError(
            message("world: ", devices[i].to_string(), " is there twice; a GPU takes one replica"));
      }
    }
  }
}

}  // namespace

struct World::Impl {
  explicit Impl(WorldOptions options_in) : options(std::move(options_in)) {}

  /// Ends and joins the threads.
  ~Impl() {
    end_group();
    {
      const std::lock_guard lock(mutex);
      ending = true;
    }
    wake.notify_all();
    for (std::thread& thread : threads) thread.join();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  /// Makes sure that there are threads for ranks 1 to replicas - 1.
  void start_threads(int replicas) {
    while (std::ssize(threads) < replicas - 1) {
      const int rank = static_cast<int>(threads.size()) + 1;
      try {
        threads.emplace_back([this, rank, seen = runs] { serve(rank, seen); });
      } catch (const std::system_error& error) {
        throw DeviceError(message("world: cannot start the thread of rank ", rank, ": ",
                                  error.what(), "; use fewer replicas"));
      }
    }
  }

  /// Sees to it that several GPUs have a group, and nobody else.
  void prepare_group(int replicas) {
    if (group_size == replicas) return;
    end_group();
    const std::vector<Device>& list = options.devices.list;
    if (replicas == 1 || list.front().kind == DeviceKind::cpu) return;
    group = make_device_group({list.begin(), list.begin() + replicas}, options.connect_limit,
                              options.log);
    group_size = replicas;
  }

  /// What is under way between GPUs ends without a result; the next run connects them anew.
  void give_up_group() {
    if (group != nullptr) group->fail();
    end_group();
  }

  void end_group() {
    const LoggedErrors logged(options.log, "world");
    group.reset();
    group_size = 0;
  }

  /// A worker: does its share of every run after the one numbered `seen`.
  void serve(int rank, std::uint64_t seen) {
    std::unique_lock lock(mutex);
    for (;;) {
      wake.wait(lock, [&] { return ending || runs != seen; });
      if (ending) return;
      seen = runs;
      if (rank >= std::ssize(communicators)) continue;
      lock.unlock();
      do_share(rank);
      lock.lock();
      if (--busy == 0) done.notify_one();
    }
  }

  /// Runs the work of one rank and keeps what fails in destructors meanwhile.
  void do_share(int rank) noexcept {
    const UnheardErrors kept;
    run_work(rank);
    const std::lock_guard lock(failure_mutex);
    if (unheard.empty()) unheard = kept.text();
  }

  /// Keeps what the work throws and wakes the others from their collectives.
  void run_work(int rank) noexcept {
    // Destroyed at the end of its work: whoever still waits for this rank in a collective is told.
    const std::unique_ptr<Communicator> communicator =
        std::move(communicators[static_cast<std::size_t>(rank)]);
    try {
      std::optional<PinnedThread> pinned;
      if (options.pin_threads) pinned.emplace(rank);
      const CurrentDevice current(options.devices.list[static_cast<std::size_t>(rank)]);
      if (group == nullptr) {
        (*work)(*communicator);
      } else {
        (*work)(*group->join(*communicator));
      }
    } catch (...) {
      Failure failure = current_failure(rank);
      {
        const std::lock_guard lock(failure_mutex);
        if (!first || first->nearness < failure.nearness) first = std::move(failure);
      }
      communicator->abort();
    }
  }

  WorldOptions options;
  std::atomic<bool> running{false};
  std::vector<std::thread> threads;  ///< element r - 1 is rank r's

  std::mutex mutex;  ///< of the following
  std::condition_variable wake;
  std::condition_variable done;
  bool ending = false;
  std::uint64_t runs = 0;  ///< begun so far
  int busy = 0;            ///< threads that have not finished this run

  // Of one run; set while no thread is busy.
  const std::function<void(Communicator&)>* work = nullptr;
  std::vector<std::unique_ptr<Communicator>> communicators;

  std::unique_ptr<DeviceGroup> group;  ///< of several GPUs; kept from run to run
  int group_size = 0;

  std::mutex failure_mutex;
  std::optional<Failure> first;  ///< failure of this run, of those nearest to the cause
  std::string unheard;           ///< the first failure in a destructor during this run
};

World::World(WorldOptions options) {
  if (options.devices.list.empty()) {
    throw UsageError("world: the list of devices is empty; name at least one, for example cpu:1");
  }
  check_devices(options.devices.list);
  impl_ = std::make_unique<Impl>(std::move(options));
}

World::~World() = default;

const Devices& World::devices() const {
  return impl_->options.devices;
}

int World::max_replicas() const {
  return static_cast<int>(impl_->options.devices.list.size());
}

const LogSink& World::log() const {
  return impl_->options.log;
}

std::chrono::seconds World::stall_limit() const {
  return impl_->options.stall_limit;
}

void World::run(int replicas, const std::function<void(Communicator&)>& work) {
  Impl& impl = *impl_;
  if (replicas < 1 || replicas > max_replicas()) {
    throw UsageError(
        message("world: ", replicas, " replicas; this world has 1 to ", max_replicas()));
  }
  if (!work) throw UsageError("world: run was given an empty function");
  if (impl.running.exchange(true)) {
    throw UsageError(
        "world: run was called while a run of this world is going on; runs come one after another");
  }
  struct EndOfRun {
    std::atomic<bool>& running;
    ~EndOfRun() { running.store(false); }
  } const end_of_run{impl.running};

  impl.start_threads(replicas);
  impl.prepare_group(replicas);
  {
    const std::lock_guard lock(impl.mutex);
    impl.communicators = make_thread_communicators(replicas);
    impl.work = &work;
    impl.first.reset();
    impl.unheard.clear();
    impl.busy = replicas - 1;
    ++impl.runs;
  }
  impl.wake.notify_all();
  impl.do_share(0);
  {
    std::unique_lock lock(impl.mutex);
    impl.done.wait(lock, [&] { return impl.busy == 0; });
  }
  if (!impl.first) {
    log_unheard(impl.options.log, "world", impl.unheard);
  } else {
    impl.give_up_group();
    const Failure failure = *std::exchange(impl.first, std::nullopt);
    const Device& device = devices().list[static_cast<std::size_t>(failure.rank)];
    failure.raise(message("rank ", failure.rank, " (", device.to_string(), "): ", failure.text));
  }
}

}  // namespace lockstep
