// What one core of this machine can do at best: multiply-adds a second, bytes a second.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/core/buffer.h"
#include "lockstep/core/device.h"

namespace lockstep::apps {

/// Bandwidth of a working set.
struct MemoryLevel {
  std::int64_t bytes = 0;
  double bandwidth = 0;  ///< bytes a second, read and written, of a = b + factor * c
};

struct Machine {
  double peak = 0;                    ///< floating-point operations a second
  std::vector<MemoryLevel> levels{};  ///< smallest first

  /// Of the smallest level that holds `bytes`, else of the largest.
  [[nodiscard]] double bandwidth_for(double bytes) const;
};

/// Measures again and again, and keeps the best: what the machine can do, not what it did beside
/// other work.
class MachineMeter {
 public:
  explicit MachineMeter(CpuSet set);
  void measure();
  [[nodiscard]] const Machine& machine() const { return machine_; }

 private:
  CpuSet set_;
  Buffer memory_;
  Machine machine_;
};

}  // namespace lockstep::apps
