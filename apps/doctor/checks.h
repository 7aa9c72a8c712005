// The checks of doctor. None throws for what it is there to find out.
#pragma once

#include <array>
#include <filesystem>
#include <string>

#include "apps/doctor/finding.h"
#include "apps/options.h"

namespace lockstep::apps {

/// Cores that may be used against those that there are.
[[nodiscard]] Finding check_cores();
/// Instruction sets of the CPU kernels.
[[nodiscard]] Finding check_instruction_sets();
/// /dev/shm, through which NCCL connects GPUs that do not reach each other; `gpus` is how many
/// there are.
[[nodiscard]] Finding check_shared_memory(int gpus);
/// Variables that change what this program does.
[[nodiscard]] Finding check_environment();

/// SHA-256 of the inflated files of "mnist" or "fashion-mnist", in the order of find_mnist.
/// scripts/fetch_mnist.sh has the same ones.
[[nodiscard]] const std::array<const char*, 4>& known_digests(const std::string& dataset);

/// The files of a data set by the SHA-256 of their content.
[[nodiscard]] Finding check_data(const DataOptions& data);

/// Room and rights where runs are written: `out`, or runs/ where it is empty. Leaves nothing.
[[nodiscard]] Finding check_run_folder(const std::filesystem::path& out);

/// Driver, libraries, architectures, GPUs and the ways between them, as --devices names them; with
/// `auto`, having none is no failure. Adds to `findings`, and returns how many GPUs can be used.
int check_gpus(const std::string& devices, Findings& findings);

}  // namespace lockstep::apps
