#include "lockstep/core/cuda/runtime.h"

#include "lockstep/core/error.h"
#include "lockstep/core/unheard.h"

namespace lockstep::cuda {
namespace {

/// "CALL: TEXT (NAME)"; forgets the error, so that no later call reports it.
std::string text_of(cudaError_t status, const std::string& call) {
  static_cast<void>(cudaGetLastError());
  return message(call, ": ", cudaGetErrorString(status), " (", cudaGetErrorName(status), ")");
}

}  // namespace

void check(cudaError_t status, const char* call) {
  if (status != cudaSuccess) throw DeviceError(text_of(status, call));
}

void check(cudaError_t status, Device device, const char* call) {
  if (status == cudaSuccess) return;
  throw DeviceError(text_of(status, message(device.to_string(), ": ", call)));
}

void note(cudaError_t status, Device device, const char* call) noexcept {
  if (status == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());
  UnheardErrors::add("cuda:", device.index, ": ", call, ": ", cudaGetErrorString(status), " (",
                     cudaGetErrorName(status), ")");
}

std::string earlier_failure() {
  // It allocates nothing and waits for nothing, is allowed while a stream is recorded, and answers
  // with the device's error as every call does.
  std::size_t free = 0;
  std::size_t total = 0;
  const cudaError_t status = cudaMemGetInfo(&free, &total);
  static_cast<void>(cudaGetLastError());
  if (status == cudaSuccess) return {};
  return text_of(status, ": the device had failed before");
}

void launch_failed(cudaError_t status, const char* operation) {
  throw DeviceError(text_of(status, message(operation, ": cudaLaunchKernel")));
}

}  // namespace lockstep::cuda
