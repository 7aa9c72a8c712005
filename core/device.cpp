#include "lockstep/core/device.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>

#include <sched.h>
#include <unistd.h>

#include "lockstep/config.h"
#include "lockstep/core/error.h"

namespace lockstep {

namespace {

constexpr int kMaxCpuReplicas = 1024;

Devices cpu_devices(int count, bool automatic) {
  Devices devices;
  devices.automatic = automatic;
  for (int index = 0; index < count; ++index) devices.list.push_back({DeviceKind::cpu, index});
  return devices;
}

/// The cgroup's quota in cores, rounded up; 0 where there is none.
int cgroup_cores() {
  // cgroup 2: "max 100000" or "<quota> <period>" in microseconds.
  if (std::ifstream file("/sys/fs/cgroup/cpu.max"); file) {
    std::string quota;
    double period = 0;
    if (file >> quota >> period && quota != "max" && period > 0) {
      return static_cast<int>((std::strtod(quota.c_str(), nullptr) + period - 1) / period);
    }
    return 0;
  }
  std::ifstream quota_file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  std::ifstream period_file("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  double quota = 0;
  double period = 0;
  if (quota_file >> quota && period_file >> period && quota > 0 && period > 0) {
    return static_cast<int>((quota + period - 1) / period);
  }
  return 0;
}

int parse_count(std::string_view digits, std::string_view whole) {
  int count = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  if (error != std::errc{} || end != digits.data() + digits.size() || count < 1 ||
      count > kMaxCpuReplicas) {
    throw UsageError(message("devices: '", whole,
                             "'; after 'cpu:' comes a number of replicas from 1 to ",
                             kMaxCpuReplicas));
  }
  return count;
}

}  // namespace

std::string Device::to_string() const {
  return message(kind == DeviceKind::cpu ? "cpu:" : "cuda:", index);
}

int allowed_cores() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  int cores = sched_getaffinity(0, sizeof mask, &mask) == 0
                  ? CPU_COUNT(&mask)
                  : static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));  // more than 1024 cores
  if (const int quota = cgroup_cores(); quota > 0) cores = std::min(cores, quota);
  return std::max(cores, 1);
}

Devices available_devices() {
  return cpu_devices(allowed_cores(), /*automatic=*/true);
}

Devices parse_devices(std::string_view text) {
  if (text == "auto") return available_devices();
  if (text == "cpu") return cpu_devices(allowed_cores(), /*automatic=*/true);
  if (text.starts_with("cpu:")) return cpu_devices(parse_count(text.substr(4), text), false);
  if (text == "cuda" || text.starts_with("cuda:")) {
    throw DeviceError(
        message("devices: '", text,
                "' asks for CUDA, but this build has no CUDA backend; use --devices cpu"));
  }
  throw UsageError(
      message("devices: '", text, "'; want auto, cpu, cpu:COUNT, cuda, cuda:0,2 or cuda:0-3"));
}

std::string_view name_of(CpuSet set) {
  switch (set) {
    case CpuSet::baseline:
      return "baseline";
    case CpuSet::avx2:
      return "avx2";
    case CpuSet::avx512:
      return "avx512";
  }
  return "unknown";
}

std::vector<CpuSet> supported_cpu_sets() {
  std::vector<CpuSet> sets{CpuSet::baseline};
  if constexpr (kHasX86Sets) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
      sets.push_back(CpuSet::avx2);
      if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
          __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq")) {
        sets.push_back(CpuSet::avx512);
      }
    }
#endif
  }
  return sets;
}

CpuSet preferred_cpu_set() {
  const std::vector<CpuSet> sets = supported_cpu_sets();
  const char* wanted = std::getenv("LOCKSTEP_CPU_ISA");
  if (wanted == nullptr || *wanted == '\0') return sets.back();
  std::string choices;
  for (const CpuSet set : sets) {
    if (name_of(set) == wanted) return set;
    choices += (choices.empty() ? "" : ", ") + std::string(name_of(set));
  }
  throw UsageError(
      message("LOCKSTEP_CPU_ISA=", wanted,
              ": not an instruction set that this build and processor run; want one of ", choices));
}

}  // namespace lockstep
