#include "apps/interrupt.h"

#include <atomic>

#include "lockstep/parallel/trainer.h"

namespace lockstep::apps {

namespace {

// A signal handler has no other way to its trainer.
std::atomic<Trainer*> stopped_trainer{nullptr};
std::atomic<bool> signal_came{false};
static_assert(std::atomic<Trainer*>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

extern "C" void handle_signal(int number) {
  // The next one, of either kind, does what it does to any program.
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  if (signal_came.exchange(true)) {
    raise(number);  // two came at once, to two threads
    return;
  }
  if (Trainer* trainer = stopped_trainer.load()) trainer->request_stop();
}

}  // namespace

InterruptGuard::InterruptGuard(Trainer& trainer) {
  signal_came.store(false);
  stopped_trainer.store(&trainer);
  struct sigaction action {};
  action.sa_handler = handle_signal;
  action.sa_flags = SA_RESTART;
  // Both wait while one is handled, so that the second finds the default.
  sigemptyset(&action.sa_mask);
  sigaddset(&action.sa_mask, SIGINT);
  sigaddset(&action.sa_mask, SIGTERM);
  sigaction(SIGINT, &action, &before_int_);
  sigaction(SIGTERM, &action, &before_term_);
}

InterruptGuard::~InterruptGuard() {
  sigaction(SIGINT, &before_int_, nullptr);
  sigaction(SIGTERM, &before_term_, nullptr);
  stopped_trainer.store(nullptr);
}

bool InterruptGuard::interrupted() const {
  return signal_came.load();
}

}  // namespace lockstep::apps
