// Which GPUs there are, and why one cannot be used.
#include <cstdio>

#include "lockstep/core/cuda/backend.h"
#include "lockstep/core/cuda/probe.h"
#include "lockstep/core/cuda/runtime.h"
#include "lockstep/core/error.h"

namespace lockstep::cuda {
namespace {

/// What keeps the runtime from any GPU. An old driver and none give the same error.
std::string reason_of(cudaError_t status) {
  static_cast<void>(cudaGetLastError());
  if (status == cudaErrorNoDevice) {
    return "the driver finds no NVIDIA GPU (CUDA_VISIBLE_DEVICES may hide them)";
  }
  int driver = 0;
  if (status == cudaErrorInsufficientDriver && cudaDriverGetVersion(&driver) == cudaSuccess) {
    if (driver == 0) return "there is no NVIDIA driver on this machine";
    return message("the NVIDIA driver is too old: it serves CUDA ", version_text(driver),
                   ", this build needs ", version_text(CUDART_VERSION), "; update the driver");
  }
  return message("CUDA does not start: cudaGetDeviceCount: ", cudaGetErrorString(status), " (",
                 cudaGetErrorName(status), ")");
}

}  // namespace

std::string version_text(int version) {
  return message(version / 1000, ".", version % 1000 / 10);
}

Found find_devices() {
  int count = 0;  // not written when the call fails
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess) return {.reason = reason_of(status)};
  if (count == 0) return {.reason = reason_of(cudaErrorNoDevice)};
  return {.count = count};
}

std::string why_unusable(Device device) {
  const Found found = find_devices();
  if (found.count == 0) return found.reason;
  if (device.index < 0 || device.index >= found.count) {
    return message("there is no such GPU; this machine has cuda:0",
                   found.count > 1 ? message(" to cuda:", found.count - 1) : "");
  }
  try {
    const CurrentDevice current(device);
    const cudaError_t status = probe_kernel_image();
    if (status == cudaSuccess) return {};
    static_cast<void>(cudaGetLastError());
    if (status == cudaErrorNoKernelImageForDevice || status == cudaErrorInvalidDeviceFunction ||
        status == cudaErrorUnsupportedPtxVersion) {
      const DeviceInfo info = query_device(device);
      return message("this build has no code for ", info.name, " (sm_", info.capability_major,
                     info.capability_minor,
                     "); build with CMAKE_CUDA_ARCHITECTURES=", info.capability_major,
                     info.capability_minor);
    }
    return message("CUDA cannot use it: cudaFuncGetAttributes: ", cudaGetErrorString(status), " (",
                   cudaGetErrorName(status), ")");
  } catch (const DeviceError& error) {
    return message("CUDA cannot use it: ", error.what());
  }
}

void check_device(Device device) {
  const std::string reason = why_unusable(device);
  if (!reason.empty()) throw DeviceError(message(device.to_string(), ": ", reason));
}

DeviceInfo query_device(Device device) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device.index), device, "cudaGetDeviceProperties");
  char pci[32] = {};
  check(cudaDeviceGetPCIBusId(pci, sizeof pci, device.index), device, "cudaDeviceGetPCIBusId");
  std::string uuid = "GPU";
  for (int i = 0; i < 16; ++i) {
    char hex[4];
    std::snprintf(hex, sizeof hex, "%02x",
                  static_cast<unsigned>(static_cast<unsigned char>(properties.uuid.bytes[i])));
    const bool starts_group = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
    uuid += std::string(starts_group ? "-" : "") + hex;
  }
  return {.name = properties.name,
          .pci = pci,
          .uuid = uuid,
          .capability_major = properties.major,
          .capability_minor = properties.minor,
          .memory = properties.totalGlobalMem};
}

int current_device() {
  int index = 0;
  check(cudaGetDevice(&index), "cudaGetDevice");
  return index;
}

void set_current_device(int index) {
  check(cudaSetDevice(index), {DeviceKind::cuda, index}, "cudaSetDevice");
}

void restore_current_device(int index) noexcept {
  note(cudaSetDevice(index), {DeviceKind::cuda, index}, "cudaSetDevice");
}

}  // namespace lockstep::cuda
