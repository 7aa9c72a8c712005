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
  // Only the signals of a guard come here. The next one, of any kind, does what it does to any
  // program.
  for (const int other : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction now {};
    sigaction(other, nullptr, &now);
    if (now.sa_handler == handle_signal) std::signal(other, SIG_DFL);
  }
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
  // All wait while one is handled, so that the second finds the default.
  sigemptyset(&action.sa_mask);
  for (const int number : kSignals) sigaddset(&action.sa_mask, number);
  for (std::size_t i = 0; i < before_.size(); ++i) {
    sigaction(kSignals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);
  }
}

InterruptGuard::~InterruptGuard() {
  for (std::size_t i = 0; i < before_.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
  stopped_trainer.store(nullptr);
}

bool InterruptGuard::interrupted() const {
  return signal_came.load();
}

}  // namespace lockstep::apps
