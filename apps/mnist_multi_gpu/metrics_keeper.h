// Writes a training's figures while it goes on.
#pragma once

#include <deque>
#include <string>

#include "lockstep/core/log.h"
#include "lockstep/io/metrics.h"

namespace lockstep::apps {

class MetricsKeeper {
 public:
  /// As MetricsWriter's. Throws IoError.
  MetricsKeeper(const RunFolder& folder, int next_epoch, LogSink log);

  /// Writes the row of an epoch. One that cannot be written is a warning, and waits.
  void add(const EpochStats& epoch);
  /// Tries again to write what waits; true when nothing is left.
  bool written();
  /// Why the last try failed; empty when it did not.
  [[nodiscard]] const std::string& trouble() const { return trouble_; }

 private:
  MetricsWriter writer_;
  LogSink log_;
  std::deque<EpochStats> waiting_;
  std::string trouble_;
};

}  // namespace lockstep::apps
