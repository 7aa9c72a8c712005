#include "runtime/device.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <set>
#include <utility>

#include "cusim.h"
#include "runtime/capture.h"
#include "runtime/settings.h"
#include "runtime/status.h"
#include "runtime/stream.h"

namespace cusim {

namespace {

thread_local int current = 0;

/// What the virtual devices say of themselves, beside the compute capability.
constexpr int kMultiprocessors = 4;
constexpr int kFirstPciBus = 0x10;

/// Which device may reach which.
class PeerAccesses {
 public:
  template <class Change>
  bool change(Change&& change) {
    const std::lock_guard lock(mutex_);
    return change(pairs_);
  }

 private:
  std::mutex mutex_;
  std::set<std::pair<int, int>> pairs_;
};

PeerAccesses& peer_accesses() {
  static PeerAccesses& all = *new PeerAccesses;
  return all;
}

std::vector<Device*> make_devices() {
  std::vector<Device*> all;
  for (int index = 0; index < settings().devices; ++index) all.push_back(new Device(index));
  return all;
}

int attribute(cudaDeviceAttr name, int index) {
  switch (name) {
    case cudaDevAttrComputeCapabilityMajor:
      return settings().compute_capability / 10;
    case cudaDevAttrComputeCapabilityMinor:
      return settings().compute_capability % 10;
    case cudaDevAttrMultiProcessorCount:
      return kMultiprocessors;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      return kThreadsPerMultiprocessor;
    case cudaDevAttrWarpSize:
      return 32;
    case cudaDevAttrMaxThreadsPerBlock:
      return kMaxThreadsPerBlock;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      return kDefaultSharedBytes;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      return max_shared_bytes();
    case cudaDevAttrPciBusId:
      return kFirstPciBus + index;
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrStreamPrioritiesSupported:
      return 1;
    case cudaDevAttrComputeMode:
      return settings().compute_mode;
    case cudaDevAttrMemoryPoolsSupported:
    case cudaDevAttrCooperativeLaunch:
      return 0;
    default:
      fail(cudaErrorNotSupported);
  }
}

}  // namespace

int max_shared_bytes() {
  switch (settings().compute_capability) {
    case 75:
      return 64 << 10;
    case 80:
    case 87:
      return 163 << 10;
    case 86:
    case 89:
    case 120:
      return 99 << 10;
    default:
      return 227 << 10;
  }
}

Stream& Device::legacy_stream() {
  if (Stream* stream = used_legacy_stream()) return *stream;
  const std::lock_guard lock(legacy_mutex_);
  if (!used_legacy_stream()) {
    legacy_.store(new Stream(index, cudaStreamDefault, true), std::memory_order_release);
  }
  return *used_legacy_stream();
}

void Device::add(Stream& stream) {
  const std::lock_guard lock(streams_mutex_);
  streams_.insert(&stream);
}

void Device::remove(Stream& stream) {
  const std::lock_guard lock(streams_mutex_);
  streams_.erase(&stream);
}

std::vector<Ticket> Device::tails(bool blocking_only) {
  const std::shared_lock lock(streams_mutex_);
  std::vector<Ticket> all;
  for (Stream* stream : streams_) {
    if (stream->blocking() || !blocking_only) all.push_back(stream->tail());
  }
  return all;
}

void Device::wait_for_streams() {
  std::vector<Ticket> work = tails(false);
  if (Stream* legacy = used_legacy_stream()) work.push_back(legacy->tail());
  for (const Ticket& ticket : work) ticket.wait();
}

Device& device(int index) {
  static const std::vector<Device*>& all = *new std::vector<Device*>(make_devices());
  require(index >= 0 && index < static_cast<int>(all.size()), cudaErrorInvalidDevice);
  return *all[static_cast<std::size_t>(index)];
}

int current_device() {
  return current;
}

}  // namespace cusim

using namespace cusim;

cudaError_t cudaGetDeviceCount(int* count) {
  return api("cudaGetDeviceCount", [&] { *count = settings().devices; });
}

cudaError_t cudaSetDevice(int index) {
  return api("cudaSetDevice", [&] { current = device(index).index; });
}

cudaError_t cudaGetDevice(int* index) {
  return api("cudaGetDevice", [&] { *index = current; });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr name, int index) {
  return api("cudaDeviceGetAttribute", [&] { *value = attribute(name, device(index).index); });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int index) {
  return api("cudaGetDeviceProperties", [&] {
    device(index);
    std::memset(properties, 0, sizeof *properties);
    std::snprintf(properties->name, sizeof properties->name, "Simulated device %d", index);
    std::snprintf(properties->uuid.bytes, sizeof properties->uuid.bytes, "simulated %d", index);
    properties->totalGlobalMem = settings().memory_bytes;
    properties->sharedMemPerBlock = kDefaultSharedBytes;
    properties->sharedMemPerBlockOptin = static_cast<std::size_t>(max_shared_bytes());
    properties->sharedMemPerMultiprocessor = static_cast<std::size_t>(max_shared_bytes());
    properties->regsPerBlock = 65536;
    properties->warpSize = 32;
    properties->maxThreadsPerBlock = kMaxThreadsPerBlock;
    properties->maxThreadsPerMultiProcessor = kThreadsPerMultiprocessor;
    properties->maxThreadsDim[0] = properties->maxThreadsDim[1] = 1024;
    properties->maxThreadsDim[2] = 64;
    properties->maxGridSize[0] = 2147483647;
    properties->maxGridSize[1] = properties->maxGridSize[2] = 65535;
    properties->major = settings().compute_capability / 10;
    properties->minor = settings().compute_capability % 10;
    properties->multiProcessorCount = kMultiprocessors;
    properties->pciBusID = kFirstPciBus + index;
    properties->unifiedAddressing = 1;
    properties->canMapHostMemory = 1;
    properties->concurrentKernels = 1;
    properties->asyncEngineCount = 2;
  });
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int index) {
  return api("cudaDeviceGetPCIBusId", [&] {
    device(index);
    const int needed = std::snprintf(text, static_cast<std::size_t>(length), "0000:%02X:00.0",
                                     static_cast<unsigned>(kFirstPciBus + index));
    require(needed < length, cudaErrorInvalidValue);
  });
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int index, int peer) {
  return api("cudaDeviceCanAccessPeer", [&] {
    device(index);
    device(peer);
    *can = settings().peers != 0 && index != peer;
  });
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  return api("cudaDeviceEnablePeerAccess", [&] {
    require(flags == 0, cudaErrorInvalidValue);
    require(device(peer).index != current, cudaErrorInvalidDevice);
    require(settings().peers != 0, cudaErrorPeerAccessUnsupported);
    require(
        peer_accesses().change([&](auto& pairs) { return pairs.emplace(current, peer).second; }),
        cudaErrorPeerAccessAlreadyEnabled);
  });
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  return api("cudaDeviceDisablePeerAccess", [&] {
    device(peer);
    require(peer_accesses().change(
                [&](auto& pairs) { return pairs.erase(std::pair(current, peer)) == 1; }),
            cudaErrorPeerAccessNotEnabled);
  });
}

cudaError_t cudaDeviceSynchronize() {
  return api("cudaDeviceSynchronize", [&] {
    forbid_observing_device(current);
    count("device_syncs");
    device(current).wait_for_streams();
    raise_if_failed(current);
  });
}

// These two work without a driver.

cudaError_t cudaRuntimeGetVersion(int* version) {
  return result_of([&] {
    pass("cudaRuntimeGetVersion");
    *version = CUDART_VERSION;
  });
}

cudaError_t cudaDriverGetVersion(int* version) {
  return result_of([&] {
    pass("cudaDriverGetVersion");
    *version = settings().driver;
  });
}

void cusim_revive_devices() {
  for (int index = 0; index < settings().devices; ++index) {
    device(index).wait_for_streams();
    device(index).sticky = 0;
  }
}
