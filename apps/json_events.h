// The events that --json prints, one JSON object a line.
#pragma once

#include <optional>
#include <ostream>
#include <string>

#include <nlohmann/json.hpp>

#include "lockstep/parallel/sharding.h"

#include "apps/options.h"
#include "apps/report.h"
#include "apps/weights_compare.h"

namespace lockstep::apps {

/// Keeps the order in which keys are set.
using Json = nlohmann::ordered_json;

/// Version of the events' fields: grows when one changes its meaning or goes.
inline constexpr int kEventSchema = 1;

/// An event with its name and schema set.
[[nodiscard]] Json make_event(const char* name);
/// `json` as text with a newline at its end; by default on one line. Bytes that are no UTF-8, which
/// names of files and messages about them may hold, become U+FFFD.
[[nodiscard]] std::string json_text(const Json& json, int indent = -1);
/// Writes `event` as one line and flushes.
void write_event(std::ostream& out, const Json& event);

/// Everything that decided a training: all options as they took effect, and what followed from
/// them.
[[nodiscard]] Json config_json(const TrainOptions& options, const TrainReport& report,
                               const Sharding& sharding);
/// `resumed` is there for a run that goes on.
[[nodiscard]] Json start_event(const Json& config, const std::optional<ResumeReport>& resumed);
[[nodiscard]] Json epoch_event(const EpochStats& epoch);
/// "result", or "interrupted" when that is what happened.
[[nodiscard]] Json result_event(const TrainEnd& end);
/// {"tensor":..,"index":..,"elements":..,"ulps":..}
[[nodiscard]] Json difference_json(const WeightDifference& difference);
[[nodiscard]] Json eval_event(const EvalReport& report);
[[nodiscard]] Json error_event(const char* kind, int exit_code, const std::string& text);

}  // namespace lockstep::apps
