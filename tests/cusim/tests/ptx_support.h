// Launching the kernels of ptx_kernels.h.
#pragma once

#include <array>
#include <cmath>
#include <vector>

#include <cuda_runtime_api.h>

#include "support/catch.h"
#include "tests/library_support.h"
#include "tests/ptx_kernels.h"

namespace cusim::test {

/// Launches on the default stream, waits and returns the first error. The argument types must be
/// those of the kernel's parameters.
template <class... Arguments>
cudaError_t launch(const void* kernel, dim3 grid, dim3 block, std::size_t shared_bytes,
                   Arguments... arguments) {
  std::array<void*, sizeof...(arguments) + 1> pointers{&arguments..., nullptr};
  const cudaError_t error =
      cudaLaunchKernel(kernel, grid, block, pointers.data(), shared_bytes, nullptr);
  return error == cudaSuccess ? cudaDeviceSynchronize() : error;
}

/// Runs kernel(x, y, count of x), where y takes `results` values for each of x; returns y.
template <class Y, class X>
std::vector<Y> map(const void* kernel, const std::vector<X>& x, std::size_t results) {
  const Buffer<X> in(x);
  const Buffer<Y> out(x.size() * results);
  const int count = static_cast<int>(x.size());
  REQUIRE(launch(kernel, dim3(1), dim3(static_cast<unsigned>(count)), 0, in.get(), out.get(),
                 count) == cudaSuccess);
  return out.read();
}

/// A number that is not like its neighbours, the same for the same i.
inline std::uint64_t mixed(std::uint64_t i) {
  i = (i + 0x9E3779B97F4A7C15) * 0xBF58476D1CE4E5B9;
  i = (i ^ i >> 30) * 0x94D049BB133111EB;
  return i ^ i >> 31;
}

}  // namespace cusim::test
