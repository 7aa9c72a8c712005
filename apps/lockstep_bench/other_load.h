// Whether somebody else worked on this machine while something was measured.
#pragma once

#include <chrono>
#include <istream>

namespace lockstep::apps {

/// Ticks of all processors that were not idle, of a /proc/stat; 0 when it is none. What a
/// hypervisor took is among them.
[[nodiscard]] double busy_ticks(std::istream& stat);

/// Watches from its construction on.
class OtherLoad {
 public:
  OtherLoad();
  /// Cores that processes other than this one and those it has waited for kept busy on average; 0
  /// where the system does not say.
  [[nodiscard]] double cores() const;

 private:
  std::chrono::steady_clock::time_point start_;
  double seconds_;  ///< of others, since the system started
};

}  // namespace lockstep::apps
