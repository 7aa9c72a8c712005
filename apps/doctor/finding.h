// What doctor finds out about a machine, and how it is told.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "apps/exit_codes.h"
#include "apps/json_events.h"

namespace lockstep::apps {

enum class Verdict { pass, warn, fail };

/// One thing that was looked at.
struct Finding {
  std::string check;  ///< "cores", "data", ...
  Verdict verdict = Verdict::pass;
  std::string text{};                 ///< what was found; several lines where there are several
  std::string remedy{};               ///< what to do; empty when nothing is to be done
  ExitCode code = ExitCode::failure;  ///< of the program where this fails
  Json details = Json::object();      ///< the figures in the text, for programs
};

using Findings = std::vector<Finding>;

/// Of all that failed the first one's code, else ok.
[[nodiscard]] ExitCode exit_code_of(const Findings& findings);

/// A line or more for people.
void write_finding(std::ostream& out, const Finding& finding);
/// The last line for people.
void write_summary(std::ostream& out, const Findings& findings);

/// An event "check", and "result" after the last of them.
[[nodiscard]] Json check_event(const Finding& finding);
[[nodiscard]] Json doctor_event(const Findings& findings);

}  // namespace lockstep::apps
