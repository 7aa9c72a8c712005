// What the two mains share: running a program's body and turning what it throws into an exit code.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apps/exit_codes.h"

namespace lockstep::apps {

using Arguments = std::vector<std::string>;

/// Runs `body` on the arguments behind the program's name and returns the process's exit code. An
/// error is written to stderr as "error: ..."; when `json_flag` is among the arguments also as a
/// JSON event on stdout. Output that stdout did not take is an error too.
[[nodiscard]] int run_program(int argc, char** argv, const std::string& json_flag,
                              const std::function<ExitCode(const Arguments&)>& body);

}  // namespace lockstep::apps
