// Throughput for several numbers of replicas: measuring, figures, reports.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "apps/exit_codes.h"
#include "apps/json_events.h"
#include "apps/options.h"

namespace lockstep::apps {

/// One number of replicas in one kind of scaling.
struct ScalingRow {
  int replicas = 0;
  std::int64_t batch_size = 0;  ///< of all replicas together
  std::vector<double> rates;    ///< samples a second, one a round
  bool above_cores = false;     ///< more replicas than cores
  // Filled by `derive`:
  double median = 0;
  double lowest = 0;
  double highest = 0;
  double speed_up = 0;    ///< median over that of the first row
  double efficiency = 0;  ///< speed-up over the growth in replicas
};

struct ScalingReport {
  std::string kind;
  std::string processor;  ///< processor_text
  int cores = 0;
  std::string model;
  std::string dataset;
  std::int64_t batch_size = 0;
  int rounds = 0;
  std::int64_t steps = 0;
  std::int64_t warm_up = 0;
  std::vector<ScalingRow> strong;
  std::vector<ScalingRow> weak;
};

/// Fills the figures that follow from the rates.
void derive(std::vector<ScalingRow>& rows);
void write_scaling(std::ostream& out, const ScalingReport& report);
[[nodiscard]] Json scaling_event(const ScalingReport& report);

[[nodiscard]] ExitCode run_scaling(const ScalingOptions& options);

}  // namespace lockstep::apps
