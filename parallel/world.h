// All replicas that train together, and the threads that drive them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "lockstep/core/device.h"
#include "lockstep/core/log.h"
#include "lockstep/parallel/communicator.h"

namespace lockstep {

struct WorldOptions {
  Devices devices = available_devices();
  /// Notices and warnings, and what fails in destructors, one record each time; nothing is printed.
  LogSink log{};
  /// The longest that connecting several GPUs may take.
  std::chrono::seconds connect_limit{120};
  /// The longest that a GPU may take from one look of the host at it to the next, a window of
  /// steps. Then a rank hangs, or does not come to a reduction, and training ends with an error.
  std::chrono::seconds stall_limit{600};
  /// While it works, the thread of rank r stays on the r-th core that the process may use. Helps
  /// where a scheduler moves threads about; hurts where other programs want the same cores.
  bool pin_threads = false;
};

/// A set of devices with one thread per replica, started when first used and kept. Rank 0's work
/// runs on the thread that calls `run`. One `run` at a time.
class World {
 public:
  explicit World(WorldOptions options = {});
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  [[nodiscard]] const Devices& devices() const;
  /// The most replicas there can be: the number of devices.
  [[nodiscard]] int max_replicas() const;
  [[nodiscard]] const LogSink& log() const;
  [[nodiscard]] std::chrono::seconds stall_limit() const;

  /// Runs `work(communicator)` for ranks 0..replicas-1, each on its own thread, and returns when
  /// all are done. When one throws, all communicators abort, every thread comes back, and the first
  /// error is thrown here (a failed reduction only when no rank has another error to tell), with
  /// rank and device in front of its message (its type is kept for Lockstep's own errors). The
  /// world can be used again after that.
  void run(int replicas, const std::function<void(Communicator&)>& work);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
