// Training of one net by this library and by others: measuring, figures, reports.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "apps/exit_codes.h"
#include "apps/json_events.h"
#include "apps/lockstep_bench/statistics.h"
#include "apps/options.h"

namespace lockstep::apps {

/// Samples of a step, for all alike.
inline constexpr std::int64_t kPeersBatch = 128;

/// What one process says about its training. Every peer prints it as one JSON object on a line of
/// its own: these names, epoch_seconds as a list without the warm-up. {"missing": "why"} in its
/// place says that it cannot be measured at all, {"model_missing": "why"} that this model cannot.
struct PeerMeasurement {
  std::string version;
  std::int64_t parameters = 0;
  double first_step_seconds = 0;  ///< since the process was started
  std::vector<double> epoch_seconds;
  double peak_rss_bytes = 0;
  double loss = 0;  ///< mean over the last epoch
};

/// One system with one number of cores.
struct PeersRow {
  std::string system;  ///< "Lockstep", "PyTorch best"
  std::string version;
  int cores = 0;
  std::vector<double> epochs{};       ///< seconds of an epoch, one a round
  std::vector<double> first_steps{};  ///< seconds since the start of the process, one a round
  double peak_rss = 0;                ///< bytes, the highest of the rounds
  double loss = 0;                    ///< of the last round
  double others = 0;  ///< cores that other processes used, the highest of the rounds
  // Filled by `derive`:
  Spread epoch{};
  double first_step = 0;  ///< median
  std::vector<double>
      ratio_rounds{};  ///< epoch over Lockstep's of the round; empty: Lockstep itself
  Spread ratio{};
};

struct PeersModel {
  std::string model;
  std::int64_t samples = 0;
  int warm_up = 0;  ///< epochs before those that count
  int epochs = 0;   ///< that count, their median is the round's
  std::vector<PeersRow> rows{};
};

struct PeersReport {
  std::string processor;
  int cores = 0;  ///< that this process may use
  std::string dataset;
  int rounds = 0;
  std::vector<PeersModel> models{};
  std::vector<std::string> notes{};  ///< what was not measured, and why
};

/// Name of this library's rows.
inline constexpr const char* kOurs = "Lockstep";

/// Fills the figures that follow from the measurements.
void derive(PeersReport& report);
void write_peers(std::ostream& out, const PeersReport& report);
[[nodiscard]] Json peers_event(const PeersReport& report);

[[nodiscard]] ExitCode run_peers(const PeersOptions& options);
/// One training of this library, as a process of its own; prints a PeerMeasurement.
[[nodiscard]] ExitCode run_peer(const PeerOptions& options);

}  // namespace lockstep::apps
