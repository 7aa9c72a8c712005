// doctor: processor, shared memory, environment.
#include <algorithm>
#include <string_view>

#include <sys/statvfs.h>
#include <unistd.h>

#include "lockstep/core/device.h"
#include "lockstep/core/error.h"
#include "lockstep/core/joined.h"
#include "lockstep/core/pinned_thread.h"

#include "apps/doctor/checks.h"
#include "apps/text.h"

namespace lockstep::apps {

namespace {

/// What NCCL's documentation advises for containers.
constexpr std::uint64_t kSharedBytes = std::uint64_t{1} << 30;

bool changes_something(std::string_view variable) {
  for (const std::string_view prefix :
       {"LOCKSTEP_", "CUDA_", "CUDNN_", "CUBLAS_", "NVIDIA_", "NCCL_", "OMP_", "GOMP_",
        "LD_LIBRARY_PATH=", "LD_PRELOAD=", "TMPDIR="}) {
    if (variable.starts_with(prefix)) return true;
  }
  return false;
}

}  // namespace

Finding check_cores() {
  const int present = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  const int mask = static_cast<int>(PinnedThread::allowed().size());
  const int allowed = allowed_cores();
  Finding finding{.check = "cores", .text = message(allowed, " of ", present, " may be used")};
  finding.details["present"] = present;
  finding.details["affinity"] = mask;
  finding.details["allowed"] = allowed;
  if (allowed < present) {
    const bool quota = mask == 0 || allowed < mask;
    finding.verdict = Verdict::warn;
    finding.text += quota ? ": the cgroup's CPU quota leaves no more"
                          : ": the affinity mask of this process leaves no more";
    finding.remedy = quota ? "if that is not meant, raise the quota (docker run --cpus)"
                           : "if that is not meant, start it without taskset, or without the "
                             "binding of the job's launcher";
  }
  return finding;
}

Finding check_instruction_sets() {
  Finding finding{.check = "instructions"};
  std::vector<std::string> sets;
  for (const CpuSet set : supported_cpu_sets()) sets.emplace_back(name_of(set));
  finding.details["supported"] = sets;
  try {
    const std::string used(name_of(preferred_cpu_set()));
    finding.details["used"] = used;
    finding.text = message(used, " in use; this build and processor run ", joined(sets, ", "));
  } catch (const UsageError& error) {
    finding.verdict = Verdict::fail;
    finding.code = ExitCode::usage;
    finding.text = error.what();
    finding.remedy = "unset LOCKSTEP_CPU_ISA, or set it to one of these";
  }
  return finding;
}

Finding check_shared_memory(int gpus) {
  constexpr const char* kPlace = "/dev/shm";
  Finding finding{.check = "shared memory"};
  struct statvfs status {};
  const bool there = statvfs(kPlace, &status) == 0 && access(kPlace, W_OK) == 0;
  const std::uint64_t size = there ? std::uint64_t{status.f_blocks} * status.f_frsize : 0;
  const std::uint64_t free = there ? std::uint64_t{status.f_bavail} * status.f_frsize : 0;
  finding.details["bytes"] = size;
  finding.details["free"] = free;
  finding.text = there ? message(kPlace, ": ", bytes_text(free), " of ", bytes_text(size), " free")
                       : message(kPlace, " cannot be written");
  if (free < kSharedBytes) {
    if (gpus < 2) {
      finding.text += "; that matters with several GPUs only";
    } else {
      finding.verdict = there ? Verdict::warn : Verdict::fail;
      finding.code = ExitCode::communication;
      finding.remedy =
          "NCCL may need 1 GB of it between GPUs: docker run --shm-size=1g, or mount "
          "a larger tmpfs there";
    }
  }
  return finding;
}

Finding check_environment() {
  std::vector<std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (changes_something(*entry)) variables.emplace_back(*entry);
  }
  std::sort(variables.begin(), variables.end());
  Finding finding{.check = "environment"};
  finding.details["variables"] = Json::object();
  for (std::string variable : variables) {
    const std::size_t equals = variable.find('=');
    finding.details["variables"][variable.substr(0, equals)] = variable.substr(equals + 1);
    std::replace_if(
        variable.begin(), variable.end(), [](char c) { return c >= 0 && c < ' '; }, '?');
    for (const auto& [name, value] : kNcclDefaults) {
      if (variable == message(name, "=", value)) variable += " (what this program sets)";
    }
    finding.text += (finding.text.empty() ? "" : "\n") + variable;
  }
  if (variables.empty()) finding.text = "no variable that changes anything is set";
  return finding;
}

}  // namespace lockstep::apps
