// Signals as stop requests to a Trainer.
#pragma once

#include <array>
#include <csignal>
#include <iterator>

namespace lockstep {
class Trainer;
}

namespace lockstep::apps {

/// While one lives, the first SIGINT, SIGTERM or SIGHUP (the terminal is gone) asks the trainer to
/// stop after the current step; the second ends the process at once. Signals that were ignored, as
/// nohup has it, stay so. One at a time.
class InterruptGuard {
 public:
  explicit InterruptGuard(Trainer& trainer);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  /// Whether a signal came.
  [[nodiscard]] bool interrupted() const;

 private:
  static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

  std::array<struct sigaction, std::size(kSignals)> before_{};
};

}  // namespace lockstep::apps
