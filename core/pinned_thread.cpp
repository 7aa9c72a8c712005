#include "lockstep/core/pinned_thread.h"

#include <sched.h>

namespace lockstep {

namespace {

void allow(const std::vector<int>& cores) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (const int core : cores) CPU_SET(core, &mask);
  (void)sched_setaffinity(0, sizeof mask, &mask);  // refused: the thread goes on as it was
}

}  // namespace

PinnedThread::PinnedThread(int index) : before_(allowed()) {
  if (before_.empty()) return;
  allow({before_[static_cast<std::size_t>(index) % before_.size()]});
}

PinnedThread::~PinnedThread() {
  if (!before_.empty()) allow(before_);
}

std::vector<int> PinnedThread::allowed() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) return {};
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &mask)) cores.push_back(core);
  }
  return cores;
}

}  // namespace lockstep
