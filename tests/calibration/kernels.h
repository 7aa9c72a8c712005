// Kernels and a device variable of the calibration, as calls of the runtime name them.
#pragma once

#include <cuda_runtime_api.h>

namespace lockstep::calibration {

using Kernel = const void*;

/// The variable's value on every device until somebody changes it.
inline constexpr float kBias = 2;
/// Static shared memory of `rotate`.
inline constexpr int kStaticSharedBytes = 1024;

[[nodiscard]] Kernel add_value_kernel();  ///< (float* x, float value, int count): x[i] += value
[[nodiscard]] Kernel reverse_kernel();    ///< (float* x): one block, dynamic shared memory
[[nodiscard]] Kernel rotate_kernel();     ///< (float* x): one block, static shared memory
[[nodiscard]] const void* bias_symbol();  ///< of a __device__ float

/// add_value by <<<>>>; the thread's last error, which stays.
[[nodiscard]] cudaError_t launch_add_value(dim3 grid, dim3 block, cudaStream_t stream, float* x,
                                           float value, int count);
/// x[0] += the device variable, on the legacy stream.
[[nodiscard]] cudaError_t launch_add_bias(float* x);

}  // namespace lockstep::calibration
