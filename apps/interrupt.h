// SIGINT and SIGTERM as stop requests to a Trainer.
#pragma once

#include <csignal>

namespace lockstep {
class Trainer;
}

namespace lockstep::apps {

/// While one lives, the first SIGINT or SIGTERM asks the trainer to stop after the current step;
/// the second ends the process at once. One at a time.
class InterruptGuard {
 public:
  explicit InterruptGuard(Trainer& trainer);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  /// Whether a signal came.
  [[nodiscard]] bool interrupted() const;

 private:
  struct sigaction before_int_ {};
  struct sigaction before_term_ {};
};

}  // namespace lockstep::apps
