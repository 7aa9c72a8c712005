#include "lockstep/parallel/device_group.h"

#include "lockstep/config.h"
#include "lockstep/parallel/nccl/group.h"

namespace lockstep {

std::unique_ptr<DeviceGroup> make_device_group(const std::vector<Device>& devices,
                                               std::chrono::seconds limit, const LogSink& log) {
  if constexpr (kHasNccl) return nccl::make_group(devices, limit, log);
  throw DeviceError(message("training on ", devices.size(),
                            " GPUs needs NCCL, which this build does not have; install NCCL "
                            "(libnccl-dev), build again, or use one GPU"));
}

}  // namespace lockstep
