// What train prints while it works.
#pragma once

#include <cstdint>

#include "lockstep/core/stats.h"
#include "lockstep/optim/schedule.h"
#include "lockstep/parallel/trainer.h"

#include "apps/json_events.h"
#include "apps/options.h"
#include "apps/progress_bar.h"
#include "apps/report.h"

namespace lockstep::apps {

/// Prints what happens while a trainer works, in the way that was asked for.
class Narrator {
 public:
  /// Both must outlive it.
  Narrator(const TrainOptions& options, ProgressBar& bar);

  void start(const TrainReport& report, const Json& config);
  void progress(const Progress& progress);
  void epoch(const EpochStats& epoch);
  void end(const TrainEnd& end);

 private:
  void open_epoch(int epoch);

  const TrainOptions& options_;
  ProgressBar& bar_;
  Schedule schedule_;
  double base_rate_ = 0;
  bool human_ = false;
  std::int64_t steps_per_epoch_ = 0;
  int open_epoch_ = -1;
};

}  // namespace lockstep::apps
