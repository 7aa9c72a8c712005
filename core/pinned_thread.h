// Keeps the calling thread on one core for a while.
#pragma once

#include <vector>

namespace lockstep {

/// From its construction to its end the thread that made it stays on one core; then it may run
/// where it might before. Where the system refuses, nothing changes. Threads that are started
/// meanwhile inherit the core.
class PinnedThread {
 public:
  /// Core number `index` of those that the thread may use, counted round and round.
  explicit PinnedThread(int index);
  ~PinnedThread();
  PinnedThread(const PinnedThread&) = delete;
  PinnedThread& operator=(const PinnedThread&) = delete;

  /// The cores that the calling thread may use, by the system's numbers; empty where it does not
  /// say.
  [[nodiscard]] static std::vector<int> allowed();

 private:
  std::vector<int> before_;
};

}  // namespace lockstep
