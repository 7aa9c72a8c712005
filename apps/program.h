// What the two mains share: running a program's body and turning what it throws into an exit code.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "apps/exit_codes.h"

namespace lockstep::apps {

/// What training on several GPUs wants of NCCL, unless the user wants something else: sums that are
/// equal from run to run, and no extra launches in a recorded step. NCCL reads it when it starts.
inline constexpr std::array<std::pair<const char*, const char*>, 2> kNcclDefaults = {
    {{"NCCL_NVLS_ENABLE", "0"}, {"NCCL_GRAPH_MIXING_SUPPORT", "0"}}};

using Arguments = std::vector<std::string>;

/// Sets kNcclDefaults where the environment says nothing else, and runs `body` on the arguments
/// behind the program's name and returns the process's exit code. An error is written to stderr as
/// "error: ..."; when `json_flag` is among the arguments also as a JSON event on stdout. Output
/// that stdout did not take is an error too.
[[nodiscard]] int run_program(int argc, char** argv, const std::string& json_flag,
                              const std::function<ExitCode(const Arguments&)>& body);

}  // namespace lockstep::apps
