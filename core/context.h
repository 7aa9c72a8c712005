// Everything an operation needs to know about where it runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "lockstep/core/buffer.h"
#include "lockstep/core/device.h"

namespace lockstep {

/// Private state of a backend (streams, library handles), made by the backend and opaque to all
/// else.
class BackendState {
 public:
  virtual ~BackendState() = default;
};

/// How products of float32 are computed.
enum class Precision {
  fp32,  ///< plain float32 arithmetic, everywhere
  tf32,  ///< CUDA devices from sm_80 on may round factors to 10 bits of mantissa
};

/// One replica's place of work: its device, its instruction set or stream, its workspace. Used by
/// one thread at a time; first argument of every operation. On CUDA an operation returns when it is
/// given to the stream; the device must be the thread's current one (CurrentDevice).
class Context {
 public:
  /// On a CPU with the instruction set preferred_cpu_set(); on CUDA with a stream of its own.
  /// Throws DeviceError where the device cannot be used.
  explicit Context(Device device);
  /// On a CPU with a chosen instruction set; it must be supported (UsageError).
  Context(Device device, CpuSet set);
  /// Waits for what the stream still has to do.
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  [[nodiscard]] Device device() const { return device_; }
  [[nodiscard]] bool on_cpu() const { return device_.kind == DeviceKind::cpu; }
  [[nodiscard]] CpuSet cpu_set() const { return cpu_set_; }

  /// Makes the workspace at least `bytes` big. Called while planning, never in the loop.
  void reserve_workspace(std::size_t bytes);
  /// Scratch memory that any operation may overwrite; aligned to kAlignment.
  [[nodiscard]] std::byte* workspace() const { return workspace_.data(); }
  [[nodiscard]] std::size_t workspace_bytes() const { return workspace_.bytes(); }
  /// How often the workspace has moved: what was recorded before holds on to an old one.
  [[nodiscard]] int workspace_moves() const { return workspace_moves_; }

  [[nodiscard]] Precision precision() const { return precision_; }
  /// Before the first operation. Throws UsageError for tf32 on a CPU.
  void set_precision(Precision precision);

  /// Waits until the device has done everything it was given. Throws what went wrong there.
  void synchronize() const;
  /// `to`, device memory, becomes `from`, host memory, and the other way round; in order with the
  /// operations. Only memory of a HostBuffer may be used before synchronize() was called.
  void copy_to_device(void* to, const void* from, std::size_t bytes) const;
  void copy_to_host(void* to, const void* from, std::size_t bytes) const;

  /// A copy of `count` values in device memory; waits for the device.
  template <class T>
  [[nodiscard]] std::vector<T> read(const T* from, std::int64_t count) const {
    std::vector<T> values(static_cast<std::size_t>(count));
    copy_to_host(values.data(), from, values.size() * sizeof(T));
    synchronize();
    return values;
  }

  /// The stream; null on a CPU.
  [[nodiscard]] const BackendState* stream() const { return stream_.get(); }
  /// A place for the library handles of the kernels, which they fill when first needed.
  [[nodiscard]] std::unique_ptr<BackendState>& handles() { return handles_; }

 private:
  Device device_;
  CpuSet cpu_set_ = CpuSet::baseline;
  Precision precision_ = Precision::fp32;
  std::unique_ptr<BackendState> stream_;  // goes last: the others may still use it
  Buffer workspace_;
  int workspace_moves_ = 0;
  std::unique_ptr<BackendState> handles_;
};

}  // namespace lockstep
