#include "lockstep/core/device.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <optional>

#include <unistd.h>

#include "lockstep/config.h"
#include "lockstep/core/cuda/backend.h"
#include "lockstep/core/error.h"
#include "lockstep/core/pinned_thread.h"
#include "lockstep/core/unheard.h"

namespace lockstep {

namespace {

constexpr int kMaxCpuReplicas = 1024;
constexpr int kMaxGpus = 1024;

/// Devices 0 to count - 1 of a kind.
Devices numbered(DeviceKind kind, int count, bool automatic) {
  Devices devices;
  devices.automatic = automatic;
  for (int index = 0; index < count; ++index) devices.list.push_back({kind, index});
  return devices;
}

/// The number that all of `digits` makes, where they make one.
std::optional<int> parse_number(std::string_view digits) {
  int number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc{} || end != digits.data() + digits.size()) return {};
  return number;
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

/// The GPUs that there are, or why there are none. Asked once: a second answer may be another.
cuda::Found find_gpus() {
  if constexpr (kHasCuda) return cuda::find_devices();
  return {.reason = "this build has no CUDA backend"};
}

/// Throws DeviceError when no GPU can be used.
int require_gpus(std::string_view asked) {
  const cuda::Found found = find_gpus();
  if (found.count > 0) return found.count;
  throw DeviceError(message("devices: '", asked, "' asks for CUDA, but ", found.reason,
                            "; or use --devices cpu"));
}

/// "0,2" or "0-3" or both, after "cuda:".
std::vector<int> parse_indices(std::string_view text, std::string_view whole) {
  const auto refuse = [&](std::string_view why) {
    throw UsageError(message("devices: '", whole, "': ", why,
                             "; after 'cuda:' come indices like 0,2 or a range like 0-3"));
  };
  const auto number = [&](std::string_view digits) {
    const int index = parse_number(digits).value_or(-1);
    if (index < 0) refuse(message("'", digits, "' is no index"));
    return index;
  };
  std::vector<int> indices;
  while (true) {
    const std::size_t comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    const std::size_t dash = part.find('-');
    const int first = number(part.substr(0, dash));
    const int last = dash == std::string_view::npos ? first : number(part.substr(dash + 1));
    if (last < first || last - first >= kMaxGpus) refuse(message("'", part, "' is no range"));
    for (int index = first; index <= last; ++index) {
      if (std::find(indices.begin(), indices.end(), index) != indices.end()) {
        refuse(message("GPU ", index, " is named twice, and a GPU takes one replica"));
      }
      indices.push_back(index);
    }
    if (comma == std::string_view::npos) return indices;
    text.remove_prefix(comma + 1);
  }
}

Devices parse_gpus(std::string_view text) {
  Devices devices;
  if (text == "cuda") return numbered(DeviceKind::cuda, require_gpus(text), /*automatic=*/true);
  const std::vector<int> indices = parse_indices(text.substr(5), text);
  const int count = require_gpus(text);
  for (const int index : indices) {
    if (index >= count) {
      throw DeviceError(message("devices: '", text, "': there is no GPU ", index,
                                "; this machine has cuda:0",
                                count > 1 ? message(" to cuda:", count - 1) : std::string()));
    }
    devices.list.push_back({DeviceKind::cuda, index});
  }
  return devices;
}

int parse_count(std::string_view digits, std::string_view whole) {
  const int count = parse_number(digits).value_or(0);
  if (count < 1 || count > kMaxCpuReplicas) {
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
  int cores = static_cast<int>(PinnedThread::allowed().size());
  if (cores == 0) cores = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));  // more than 1024 cores
  if (const int quota = cgroup_cores(); quota > 0) cores = std::min(cores, quota);
  return std::max(cores, 1);
}

std::string DeviceInfo::to_string() const {
  return message(name, ", sm_", capability_major, capability_minor, ", ", memory / 1'000'000'000,
                 " GB, PCI ", pci, ", ", uuid);
}

DeviceInfo device_info(Device device) {
  if (device.kind == DeviceKind::cpu) {
    throw UsageError(message("device_info: ", device.to_string(), " is no GPU"));
  }
  if (const std::string reason = why_no_gpu(); !reason.empty()) {
    throw DeviceError(message(device.to_string(), ": ", reason));
  }
  if constexpr (kHasCuda) return cuda::query_device(device);
  return {};
}

std::string why_no_gpu() {
  return find_gpus().reason;
}

CurrentDevice::CurrentDevice(Device device) {
  enter(device);
}

CurrentDevice::CurrentDevice(Device device, std::nothrow_t) noexcept {
  try {
    enter(device);
  } catch (const Error& error) {
    UnheardErrors::add(error.what());
  }
}

void CurrentDevice::enter(Device device) {
  if constexpr (kHasCuda) {
    if (device.kind != DeviceKind::cuda) return;
    const int current = cuda::current_device();
    if (current == device.index) return;
    cuda::set_current_device(device.index);
    before_ = current;
  }
}

CurrentDevice::~CurrentDevice() {
  if constexpr (kHasCuda) {
    if (before_ >= 0) cuda::restore_current_device(before_);
  }
}

Devices available_devices() {
  const cuda::Found found = find_gpus();
  std::string reason = found.reason;
  if constexpr (kHasCuda) {
    Devices devices{.automatic = true};
    for (const Device device : numbered(DeviceKind::cuda, found.count, true).list) {
      const std::string flaw = cuda::why_unusable(device);
      if (flaw.empty()) {
        devices.list.push_back(device);
      } else if (reason.empty()) {
        reason = message(device.to_string(), ": ", flaw);
      }
    }
    if (!devices.list.empty()) {
      if (!reason.empty()) devices.notice = message("not every GPU is used: ", reason);
      return devices;
    }
  }
  Devices devices = numbered(DeviceKind::cpu, allowed_cores(), /*automatic=*/true);
  devices.notice = message("no GPU is used: ", reason, "; training on the CPU");
  return devices;
}

Devices parse_devices(std::string_view text) {
  if (text == "auto") return available_devices();
  if (text == "cpu") return numbered(DeviceKind::cpu, allowed_cores(), /*automatic=*/true);
  if (text.starts_with("cpu:"))
    return numbered(DeviceKind::cpu, parse_count(text.substr(4), text), false);
  if (text == "cuda" || text.starts_with("cuda:")) return parse_gpus(text);
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
