#include "lockstep/core/context.h"

#include <algorithm>
#include <cstring>

#include "lockstep/config.h"
#include "lockstep/core/cuda/backend.h"
#include "lockstep/core/error.h"
#include "lockstep/core/unheard.h"

namespace lockstep {

Context::Context(Device device) : Context(device, preferred_cpu_set()) {}

Context::Context(Device device, CpuSet set) : device_(device), cpu_set_(set) {
  const std::vector<CpuSet> sets = supported_cpu_sets();
  if (std::find(sets.begin(), sets.end(), set) == sets.end()) {
    throw UsageError(message("context: this processor does not run the instruction set ",
                             name_of(set), "; the fastest it runs is ", name_of(sets.back())));
  }
  if (on_cpu()) return;
  if constexpr (kHasCuda) {
    cuda::check_device(device);
    stream_ = cuda::make_stream(device);
  } else {
    throw DeviceError(message("context: ", why_no_gpu(), ", so ", device.to_string(),
                              " cannot be used; use a CPU device"));
  }
}

Context::~Context() {
  if (stream_ == nullptr) return;
  const CurrentDevice current(device_, std::nothrow);
  handles_.reset();
  try {
    synchronize();
  } catch (const Error& error) {
    UnheardErrors::add(error.what());
  }
}

void Context::reserve_workspace(std::size_t bytes) {
  if (bytes > workspace_.bytes()) {
    synchronize();  // operations under way may use the old one
    workspace_ = Buffer(device_, bytes, "the workspace");
    ++workspace_moves_;
  }
}

void Context::set_precision(Precision precision) {
  if (on_cpu() && precision == Precision::tf32) {
    throw UsageError("precision: a CPU computes in fp32 only; tf32 is for CUDA devices");
  }
  precision_ = precision;
}

void Context::synchronize() const {
  if constexpr (kHasCuda) {
    if (!on_cpu()) cuda::synchronize(*this);
  }
}

void Context::copy_to_device(void* to, const void* from, std::size_t bytes) const {
  if (bytes == 0) return;
  if constexpr (kHasCuda) {
    if (!on_cpu()) return cuda::copy_to_device(*this, to, from, bytes);
  }
  std::memcpy(to, from, bytes);
}

void Context::copy_to_host(void* to, const void* from, std::size_t bytes) const {
  if (bytes == 0) return;
  if constexpr (kHasCuda) {
    if (!on_cpu()) return cuda::copy_to_host(*this, to, from, bytes);
  }
  std::memcpy(to, from, bytes);
}

}  // namespace lockstep
