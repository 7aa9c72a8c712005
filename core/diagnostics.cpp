#include "lockstep/core/diagnostics.h"

#include <algorithm>
#include <fstream>

#include "lockstep/config.h"
#include "lockstep/core/cuda/backend.h"
#include "lockstep/core/error.h"

namespace lockstep {

std::vector<std::string> mapped_files(std::string_view prefix) {
  std::vector<std::string> files;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const std::size_t path = line.find('/');
    if (path == std::string::npos) continue;
    std::string file = line.substr(path);
    if (!std::string_view(file).substr(file.rfind('/') + 1).starts_with(prefix)) continue;
    files.push_back(std::move(file));
  }
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  return files;
}

std::vector<LibraryVersion> core_libraries() {
  if constexpr (kHasCuda) return {cuda::runtime_library()};
  return {};
}

std::string driver_version() {
  if constexpr (kHasCuda) return cuda::driver_version();
  return {};
}

DeviceState device_state(Device device) {
  static_cast<void>(device_info(device));  // throws for what is no GPU
  if constexpr (kHasCuda) return cuda::query_state(device);
  return {};
}

std::string why_gpu_unusable(Device device) {
  if constexpr (kHasCuda) return cuda::why_unusable(device);
  return why_no_gpu();
}

PeerCopy check_peer_copy(Device from, Device to) {
  if (const std::string reason = why_no_gpu(); !reason.empty()) return {.flaw = reason};
  if constexpr (kHasCuda) return cuda::check_peer_copy(from, to);
  return {};
}

}  // namespace lockstep
