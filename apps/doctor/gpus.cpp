// doctor: driver, libraries, architectures, GPUs, and the ways between them.
#include <algorithm>
#include <charconv>
#include <set>

#include "lockstep/config.h"
#include "lockstep/core/device.h"
#include "lockstep/core/diagnostics.h"
#include "lockstep/core/error.h"
#include "lockstep/core/joined.h"
#include "lockstep/parallel/libraries.h"

#include "apps/doctor/checks.h"
#include "apps/text.h"

namespace lockstep::apps {

namespace {

constexpr const char* kNames = "nvidia-smi tells what the driver sees";

/// The numbers of a version, to be compared in their order.
std::vector<int> numbers_of(const std::string& version) {
  std::vector<int> numbers;
  const char* at = version.data();
  const char* const end = at + version.size();
  while (at < end) {
    int number = 0;
    at = std::from_chars(at, end, number).ptr;
    numbers.push_back(number);
    if (at < end) ++at;
  }
  return numbers;
}

bool older(const std::string& a, const std::string& b) {
  return numbers_of(a) < numbers_of(b);
}

/// Worsens the verdict, adds the remedy.
void add(Finding& finding, Verdict verdict, const std::string& remedy) {
  finding.verdict = std::max(finding.verdict, verdict);
  if (finding.remedy.find(remedy) == std::string::npos) {
    finding.remedy += (finding.remedy.empty() ? "" : "\n") + remedy;
  }
}

Finding no_gpu(const std::string& reason, bool asked_for) {
  Finding finding{.check = "GPUs",
                  .verdict = asked_for ? Verdict::fail : Verdict::warn,
                  .text = "no GPU: " + reason,
                  .code = ExitCode::device};
  finding.remedy = kHasCuda ? message("install or update NVIDIA's driver; ", kNames)
                            : "configure with -D LOCKSTEP_CUDA=ON where the CUDA toolkit is";
  if (!asked_for) finding.remedy += "; or train on the CPU, as without --devices";
  return finding;
}

Finding check_driver() {
  const LibraryVersion runtime = core_libraries().front();
  const std::string driver = driver_version();
  Finding finding{.check = "driver",
                  .text = message("serves CUDA ", driver, "; the runtime is ", runtime.loaded),
                  .code = ExitCode::device};
  finding.details["driver"] = driver;
  finding.details["runtime"] = runtime.loaded;
  if (older(driver, runtime.loaded)) {
    add(finding, Verdict::warn,
        "it works within one major version of CUDA, but compiles no code for GPUs that are newer "
        "than this build: update the driver");
  }
  return finding;
}

Finding check_libraries() {
  Finding finding{.check = "libraries", .code = ExitCode::device};
  std::vector<std::string> lines;
  for (const LibraryVersion& library : gpu_libraries()) {
    finding.details[library.name] = {
        {"built", library.built}, {"loaded", library.loaded}, {"files", library.files}};
    std::string line = message(library.name, " ", library.loaded);
    if (library.loaded != library.built) line += message(", built with ", library.built);
    lines.push_back(line);
    std::set<std::string> folders;
    for (const std::string& file : library.files) {
      lines.push_back("  " + file);
      folders.insert(std::filesystem::path(file).parent_path().string());
    }
    if (older(library.loaded, library.built)) {
      // World refuses an older NCCL; the others keep their interfaces within a major version.
      add(finding, library.name == "NCCL" ? Verdict::fail : Verdict::warn,
          message(library.name,
                  " is older than what this program was built with: put the newer "
                  "one first in LD_LIBRARY_PATH"));
    }
    if (folders.size() > 1) {
      add(finding, Verdict::fail,
          message("parts of ", library.name,
                  " come from several places: leave one of them in LD_LIBRARY_PATH"));
    }
  }
  if (!kHasCudnn) lines.emplace_back("cuDNN is not built in: plain kernels do convolutions");
  if (!kHasNccl) lines.emplace_back("NCCL is not built in: training takes one GPU");
  finding.text = joined(lines, "\n");
  return finding;
}

std::string text_of(ComputeMode mode) {
  switch (mode) {
    case ComputeMode::shared:
      return "shared";
    case ComputeMode::exclusive:
      return "one process at a time";
    case ComputeMode::prohibited:
      return "prohibited";
  }
  return "unknown";
}

/// One line of the GPU; true when it can be used.
bool look_at(Device device, Finding& finding, std::vector<std::string>& lines) {
  Json details{{"device", device.to_string()}};
  std::string line = device.to_string() + ": ";
  bool good = false;
  try {
    const DeviceInfo info = device_info(device);
    const DeviceState state = device_state(device);
    line += message(info.to_string(), ", ", bytes_text(state.free), " free, ", text_of(state.mode));
    details["name"] = info.name;
    details["architecture"] = message("sm_", info.capability_major, info.capability_minor);
    details["pci"] = info.pci;
    details["uuid"] = info.uuid;
    details["memory"] = info.memory;
    details["free"] = state.free;
    details["mode"] = text_of(state.mode);
    const std::string flaw = why_gpu_unusable(device);
    good = flaw.empty() && state.mode != ComputeMode::prohibited;
    if (state.mode == ComputeMode::prohibited) {
      add(finding, Verdict::fail,
          message("nvidia-smi -i ", info.pci, " -c DEFAULT as root lets programs use it"));
    } else if (!flaw.empty()) {
      line += message("\n  ", flaw);
      add(finding, Verdict::fail,
          message("this build has code for ", kCudaArchitectures,
                  "; leave the GPU out with --devices, or build for it"));
    }
    details["flaw"] = flaw;
  } catch (const Error& error) {
    line += error.what();
    details["flaw"] = error.what();
    add(finding, Verdict::fail, kNames);
  }
  finding.details["devices"].push_back(details);
  lines.push_back(line);
  return good;
}

Finding check_peers(const std::vector<Device>& devices) {
  Finding finding{.check = "peer copies", .code = ExitCode::communication};
  finding.details["pairs"] = Json::array();
  std::vector<std::string> flaws;
  int direct = 0;
  int pairs = 0;
  for (const Device& from : devices) {
    for (const Device& to : devices) {
      if (from == to) continue;
      const PeerCopy copy = check_peer_copy(from, to);
      ++pairs;
      direct += copy.direct ? 1 : 0;
      finding.details["pairs"].push_back({{"from", from.to_string()},
                                          {"to", to.to_string()},
                                          {"direct", copy.direct},
                                          {"flaw", copy.flaw}});
      if (copy.flaw.empty()) continue;
      flaws.push_back(message(from.to_string(), " to ", to.to_string(), " and back: ", copy.flaw));
      add(finding, Verdict::fail,
          "NCCL_P2P_DISABLE=1 makes NCCL go around this way; the cause is often the IOMMU or PCIe "
          "access control: switch them off in the firmware");
    }
  }
  std::vector<std::string> lines{message(pairs - std::ssize(flaws), " of ", pairs,
                                         " ways there and back bring the data, ", direct,
                                         " of them directly")};
  lines.insert(lines.end(), flaws.begin(), flaws.end());
  finding.text = joined(lines, "\n");
  if (flaws.empty() && direct < pairs) {
    add(finding, Verdict::warn,
        "the others go through the host's memory, which is slower; nvidia-smi topo -p2p r tells "
        "more");
  }
  return finding;
}

/// The GPUs that `text` asks for; Devices without any for a CPU, and DeviceError as parse_devices.
std::vector<Device> gpus_of(const std::string& text) {
  std::vector<Device> gpus;
  if (text != "auto") {
    for (const Device& device : parse_devices(text).list) {
      if (device.kind == DeviceKind::cuda) gpus.push_back(device);
    }
  } else if (why_no_gpu().empty()) {
    return parse_devices("cuda").list;
  }
  return gpus;
}

}  // namespace

int check_gpus(const std::string& devices, Findings& findings) {
  std::vector<Device> gpus;
  try {
    gpus = gpus_of(devices);
  } catch (const DeviceError& error) {
    const std::string reason = why_no_gpu();
    findings.push_back(no_gpu(reason.empty() ? error.what() : reason, true));
    return 0;
  }
  if (gpus.empty()) {
    if (devices == "auto") {
      findings.push_back(no_gpu(why_no_gpu(), false));
    } else {
      findings.push_back({.check = "GPUs", .text = "not looked at: --devices " + devices});
    }
    return 0;
  }
  findings.push_back(check_driver());
  Finding finding{.check = "GPUs", .code = ExitCode::device};
  std::vector<std::string> lines;
  std::vector<Device> good;
  for (const Device& device : gpus) {
    if (look_at(device, finding, lines)) good.push_back(device);
  }
  finding.text = joined(lines, "\n");
  finding.details["architectures"] = kCudaArchitectures;
  findings.push_back(finding);
  findings.push_back(check_libraries());
  if (good.size() > 1) findings.push_back(check_peers(good));
  return static_cast<int>(good.size());
}

}  // namespace lockstep::apps
