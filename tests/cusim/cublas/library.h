// What the simulated cuBLAS and cuDNN share beside their arithmetic.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <string_view>

#include <cuda_runtime_api.h>

#include "runtime/device_api.h"

namespace cusim {

/// Whether `device` rounds to TF32 where a math mode allows it: compute capability 8.0 at least,
/// and not forbidden by NVIDIA_TF32_OVERRIDE=0.
inline bool has_tf32(int device) {
  const char* forced = std::getenv("NVIDIA_TF32_OVERRIDE");
  int major = 0;
  return (!forced || std::string_view(forced) != "0") &&
         cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
         major >= 8;
}

/// Overwrites a workspace with NaN, as a real library would with what it needs there.
inline void overwrite_workspace(void* workspace, std::size_t bytes, int device, const char* what) {
  const std::size_t count = bytes / sizeof(float);
  if (count == 0) return;
  float* values = host_pointer(static_cast<float*>(workspace), count, device, what);
  std::fill_n(values, count, std::numeric_limits<float>::quiet_NaN());
}

/// A little device memory that a handle owns. It makes creating one what it is on a GPU: an
/// allocation, refused during capture, lost when the handle is not destroyed.
class HandleMemory {
 public:
  HandleMemory() : memory_(library_memory(256)) {}
  ~HandleMemory() {
    if (memory_) free_library_memory(memory_);
  }
  HandleMemory(const HandleMemory&) = delete;
  HandleMemory& operator=(const HandleMemory&) = delete;

  [[nodiscard]] bool ready() const { return memory_ != nullptr; }

 private:
  void* memory_;
};

}  // namespace cusim
