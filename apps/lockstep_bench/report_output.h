// Where the report of a benchmark goes.
#pragma once

#include <string>

#include "apps/json_events.h"

namespace lockstep::apps {

/// Whether tables and progress are for people: not with --quiet, nor when stdout takes the JSON.
/// Comes before anything is measured, and throws IoError when --json names a file that cannot be
/// written.
[[nodiscard]] bool begin_report(const std::string& json, bool quiet);
/// Writes the event where --json says: nowhere, stdout or a file. Throws IoError.
void deliver(const std::string& json, const Json& event);

}  // namespace lockstep::apps
