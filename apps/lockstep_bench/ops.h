// Single operations of the library against what the machine can do: measuring, figures, reports.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "apps/exit_codes.h"
#include "apps/json_events.h"
#include "apps/lockstep_bench/machine.h"
#include "apps/lockstep_bench/statistics.h"
#include "apps/options.h"

namespace lockstep::apps {

/// One operation on one shape.
struct OpsRow {
  std::string operation;
  std::string shape;
  std::int64_t block = 0;         ///< samples, or elements of an arena
  double flops = 0;               ///< nominal, of one call
  double bytes = 0;               ///< compulsory: inputs read once, outputs written once
  double working_set = 0;         ///< bytes of all that it touches
  std::vector<double> seconds{};  ///< of a call, one a round
  // Filled by `derive`:
  Spread time{};
  double flop_rate = 0;  ///< a second
  double byte_rate = 0;  ///< a second
  double bound = 0;      ///< seconds that arithmetic or memory need at least
  double share_of_bound = 0;
  double share_of_peak = 0;  ///< of the machine's multiply-adds
};

struct OpsReport {
  std::string set;  ///< instruction set
  int rounds = 0;
  double others = 0;  ///< cores that other processes kept busy meanwhile
  Machine machine{};
  std::vector<OpsRow> rows{};
};

/// Fills the figures that follow from seconds and machine.
void derive(OpsReport& report);
void write_ops(std::ostream& out, const OpsReport& report);
[[nodiscard]] Json ops_event(const OpsReport& report);

[[nodiscard]] ExitCode run_ops(const OpsOptions& options);

}  // namespace lockstep::apps
