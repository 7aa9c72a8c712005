// GPUs connected by NCCL. No NCCL type: builds without it compile the caller too. Internal.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "lockstep/core/diagnostics.h"
#include "lockstep/parallel/device_group.h"

namespace lockstep::nccl {

[[nodiscard]] std::unique_ptr<DeviceGroup> make_group(const std::vector<Device>& devices,
                                                      std::chrono::seconds limit,
                                                      const LogSink& log);

[[nodiscard]] LibraryVersion library();

}  // namespace lockstep::nccl
