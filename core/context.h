// Everything an operation needs to know about where it runs.
#pragma once

#include <cstddef>
#include <memory>

#include "lockstep/core/buffer.h"
#include "lockstep/core/device.h"

namespace lockstep {

/// Private state of a backend (streams, library handles), made by the backend and opaque to all
/// else.
class BackendState {
 public:
  virtual ~BackendState() = default;
};

/// One replica's place of work: its device, its instruction set or stream, its workspace. Used by
/// one thread at a time; first argument of every operation.
class Context {
 public:
  /// On a CPU with the instruction set preferred_cpu_set().
  explicit Context(Device device);
  /// On a CPU with a chosen instruction set; it must be supported (UsageError).
  Context(Device device, CpuSet set);

  [[nodiscard]] Device device() const { return device_; }
  [[nodiscard]] bool on_cpu() const { return device_.kind == DeviceKind::cpu; }
  [[nodiscard]] CpuSet cpu_set() const { return cpu_set_; }

  /// Makes the workspace at least `bytes` big. Called while planning, never in the loop.
  void reserve_workspace(std::size_t bytes);
  /// Scratch memory that any operation may overwrite; aligned to kAlignment.
  [[nodiscard]] std::byte* workspace() const { return workspace_.data(); }
  [[nodiscard]] std::size_t workspace_bytes() const { return workspace_.bytes(); }

  [[nodiscard]] std::unique_ptr<BackendState>& backend() { return backend_; }

 private:
  Device device_;
  CpuSet cpu_set_ = CpuSet::baseline;
  Buffer workspace_;
  std::unique_ptr<BackendState> backend_;
};

}  // namespace lockstep
