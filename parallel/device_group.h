// What lets replicas on several GPUs reduce on the devices. Internal.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "lockstep/core/device.h"
#include "lockstep/core/log.h"
#include "lockstep/parallel/communicator.h"

namespace lockstep {

/// The connection between a world's GPUs. It is kept from run to run, because making it takes
/// seconds, and given up when a run fails.
class DeviceGroup {
 public:
  virtual ~DeviceGroup() = default;
  /// `host`, which outlives the result, with reductions on the devices. Called by all ranks at
  /// once, each on its own thread with its device current; the first time it connects them. Throws
  /// CommError when that fails or takes too long.
  [[nodiscard]] virtual std::unique_ptr<Communicator> join(Communicator& host) = 0;
  /// What is under way will not be finished: destruction then aborts instead of taking leave.
  virtual void fail() noexcept = 0;
};

/// Throws DeviceError when this build cannot connect GPUs. `limit`: the longest that connecting may
/// take.
[[nodiscard]] std::unique_ptr<DeviceGroup> make_device_group(const std::vector<Device>& devices,
                                                             std::chrono::seconds limit,
                                                             const LogSink& log);

}  // namespace lockstep
