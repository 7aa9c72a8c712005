// The libraries' handles of one context, made when first needed. Internal.
#pragma once

#include <memory>

#include <cublas_v2.h>

#include "lockstep/core/buffer.h"
#include "lockstep/core/context.h"

namespace lockstep::cuda {

class Handles final : public BackendState {
 public:
  /// Throws DeviceError with the library's text.
  explicit Handles(const Context& context);
  ~Handles() override;
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;

  /// On the context's stream, in the context's precision, with a workspace of its own.
  [[nodiscard]] cublasHandle_t cublas() const { return cublas_; }

  /// kTickets counters of finished blocks for the kernels whose last block adds up what all left:
  /// 0 between launches.
  [[nodiscard]] unsigned* tickets() const { return tickets_.as<unsigned>(); }
  static constexpr std::size_t kTickets = 1 << 16;

  /// A place for what the convolutions keep, filled by them.
  std::unique_ptr<BackendState> convolutions;

 private:
  Device device_;
  Buffer cublas_workspace_;
  Buffer tickets_;
  cublasHandle_t cublas_ = nullptr;
};

/// Those of `context`, which must compute on the thread's current device.
[[nodiscard]] Handles& handles_of(Context& context);

/// Throws DeviceError for anything but success: "cuda:1: CALL: TEXT".
void check(cublasStatus_t status, Device device, const char* call);

}  // namespace lockstep::cuda
