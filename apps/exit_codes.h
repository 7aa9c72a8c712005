// What the exit codes of our programs mean, and how errors become them.
#pragma once

#include <exception>

namespace lockstep::apps {

/// Documented at the end of `--help`; scripts rely on the numbers.
enum class ExitCode {
  ok = 0,
  failure = 1,
  usage = 2,
  data = 3,
  device = 4,
  communication = 5,
  non_finite = 6,
  io = 7,
  diverged = 8,
  interrupted = 130,
};

/// The code for what was thrown.
[[nodiscard]] ExitCode exit_code_of(const std::exception& error);

/// One word for a code, used as "kind" in the JSON event of an error.
[[nodiscard]] const char* name_of(ExitCode code);

}  // namespace lockstep::apps
