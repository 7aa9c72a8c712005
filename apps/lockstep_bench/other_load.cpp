#include "apps/lockstep_bench/other_load.h"

#include <algorithm>
#include <fstream>
#include <string>

#include <sys/resource.h>
#include <unistd.h>

namespace lockstep::apps {

namespace {

/// Processor time of `who`, in seconds.
double used_by(int who) {
  rusage usage{};
  getrusage(who, &usage);
  constexpr double kMicro = 1e-6;
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + kMicro * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// Processor time that is not ours, since the system started.
double used_by_others() {
  std::ifstream file("/proc/stat");
  const double ticks = busy_ticks(file);
  return ticks / static_cast<double>(sysconf(_SC_CLK_TCK)) - used_by(RUSAGE_SELF) -
         used_by(RUSAGE_CHILDREN);
}

}  // namespace

double busy_ticks(std::istream& stat) {
  std::string word;
  stat >> word;
  // user, nice, system, idle, iowait, irq, softirq, steal; what guests use is in user already.
  constexpr int kFields = 8;
  constexpr int kIdle = 3;
  constexpr int kWaiting = 4;
  double ticks = 0;
  for (int field = 0; field < kFields; ++field) {
    double count = 0;
    if (!(stat >> count)) return 0;
    if (field != kIdle && field != kWaiting) ticks += count;
  }
  return ticks;
}

OtherLoad::OtherLoad() : start_(std::chrono::steady_clock::now()), seconds_(used_by_others()) {}

double OtherLoad::cores() const {
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
  return std::max(0.0, (used_by_others() - seconds_) / elapsed.count());
}

}  // namespace lockstep::apps
