// How functions of the runtime fail, and how devices do.
#pragma once

#include <new>

#include <cuda_runtime_api.h>

#include "runtime/device_api.h"

namespace cusim {

/// Thrown inside the runtime; api() turns it into the result and the thread's last error.
struct Failure {
  cudaError_t code;
};

[[noreturn]] inline void fail(cudaError_t code) {
  throw Failure{code};
}

inline void require(bool condition, cudaError_t otherwise) {
  if (!condition) fail(otherwise);
}

/// Fails without a usable driver and device, and inside an operation that runs on a stream.
void require_callable();

/// Fails with the sticky error of the device.
void raise_if_failed(int device);

/// 0, or the sticky error of the device.
cudaError_t sticky_error(int device);

/// Sets the thread's last error; returns it.
cudaError_t record_error(cudaError_t code);

/// Runs `body` and returns what it ends with, also as the thread's last error.
template <class Body>
cudaError_t result_of(Body&& body) {
  try {
    body();
    return cudaSuccess;
  } catch (const Failure& failure) {
    return record_error(failure.code);
  } catch (const std::bad_alloc&) {
    return record_error(cudaErrorMemoryAllocation);
  }
}

/// Fails when the fault of this point is due.
inline void pass(const char* point) {
  int code = 0;
  if (fault(point, &code)) fail(static_cast<cudaError_t>(code));
}

/// The body of the runtime function `name`, which is also a point for faults.
template <class Body>
cudaError_t api(const char* name, Body&& body) {
  return result_of([&] {
    require_callable();
    pass(name);
    body();
  });
}

/// The same for a function that gives something back: a fault lets it fail after that.
template <class Body>
cudaError_t release_api(const char* name, Body&& body) {
  return result_of([&] {
    require_callable();
    int code = 0;
    const bool fails = fault(name, &code);
    body();
    require(!fails, static_cast<cudaError_t>(code));
  });
}

/// Runs an operation on this thread as `device` would: not on a failed device, and what it throws
/// becomes the sticky error.
void execute(const Operation& operation, int device, std::uint64_t stream);

}  // namespace cusim
