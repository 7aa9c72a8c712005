// Facts about this machine and the libraries below this one, for people who look for what is wrong.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/core/device.h"

namespace lockstep {

/// A shared library that this build calls.
struct LibraryVersion {
  std::string name;                  ///< "cuDNN"
  std::string built;                 ///< the version of the headers, "9.19.0"
  std::string loaded;                ///< the version that runs
  std::vector<std::string> files{};  ///< where it and its parts were found
};

/// Files mapped into this process whose name begins with `prefix` ("libcudnn"), sorted.
[[nodiscard]] std::vector<std::string> mapped_files(std::string_view prefix);

/// The libraries that core calls: CUDA's runtime, or none in a build without it.
[[nodiscard]] std::vector<LibraryVersion> core_libraries();

/// The newest CUDA that the driver serves, "13.0"; empty when there is no driver or no backend.
[[nodiscard]] std::string driver_version();

/// Who may use a GPU.
enum class ComputeMode { shared, exclusive, prohibited };

/// How a GPU is at this moment. Throws DeviceError where it cannot be asked, UsageError for a CPU.
struct DeviceState {
  std::size_t free = 0;  ///< bytes
  ComputeMode mode = ComputeMode::shared;
};
[[nodiscard]] DeviceState device_state(Device device);

/// Why this build cannot use a GPU, as a clause; empty when it can.
[[nodiscard]] std::string why_gpu_unusable(Device device);

/// How data goes from one GPU to another.
struct PeerCopy {
  bool direct = false;  ///< they reach each other's memory; else it goes through the host
  std::string flaw{};   ///< what went wrong, as a clause; empty when the data came back unchanged
};

/// Copies a pattern from `from` to `to` and back and compares. Gives up after some seconds, and
/// leaves what was begun alone then.
[[nodiscard]] PeerCopy check_peer_copy(Device from, Device to);

}  // namespace lockstep
