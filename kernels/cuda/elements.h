// Device code that works through arrays element by element: four at a time, 16 bytes where the
// memory is aligned. Internal.
#pragma once

#include <cstdint>

namespace lockstep::cuda {

inline constexpr int kThreads = 256;

/// Blocks of kThreads threads for `count` elements, four to a thread. At least 1; enough to fill
/// any GPU, after which threads loop.
inline unsigned blocks_for(std::int64_t count) {
  constexpr std::int64_t kMost = 4096;
  const std::int64_t wanted = (count + 4 * kThreads - 1) / (4 * kThreads);
  return static_cast<unsigned>(wanted < 1 ? 1 : wanted > kMost ? kMost : wanted);
}

/// The first element of this thread's first four, and how far on its next four are.
__device__ inline std::int64_t first_element() {
  return 4 * (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x);
}
__device__ inline std::int64_t element_stride() {
  return 4 * std::int64_t{gridDim.x} * blockDim.x;
}

template <class Four, class T>
__device__ bool aligned_four(const T* at, std::int64_t left) {
  return left >= 4 && reinterpret_cast<std::uintptr_t>(at) % sizeof(Four) == 0;
}

/// The four elements from `from` on; zeros beyond the `left` that there are.
__device__ inline float4 load4(const float* from, std::int64_t left) {
  if (aligned_four<float4>(from, left)) return *reinterpret_cast<const float4*>(from);
  return {left > 0 ? from[0] : 0.0F, left > 1 ? from[1] : 0.0F, left > 2 ? from[2] : 0.0F,
          left > 3 ? from[3] : 0.0F};
}

__device__ inline uchar4 load4(const std::uint8_t* from, std::int64_t left) {
  if (aligned_four<uchar4>(from, left)) return *reinterpret_cast<const uchar4*>(from);
  const auto at = [&](int i) -> unsigned char { return left > i ? from[i] : 0; };
  return {at(0), at(1), at(2), at(3)};
}

/// Stores the first `left` of four elements.
__device__ inline void store4(float* to, std::int64_t left, float4 value) {
  if (aligned_four<float4>(to, left)) {
    *reinterpret_cast<float4*>(to) = value;
    return;
  }
  if (left > 0) to[0] = value.x;
  if (left > 1) to[1] = value.y;
  if (left > 2) to[2] = value.z;
  if (left > 3) to[3] = value.w;
}

__device__ inline void store4(std::uint8_t* to, std::int64_t left, uchar4 value) {
  if (aligned_four<uchar4>(to, left)) {
    *reinterpret_cast<uchar4*>(to) = value;
    return;
  }
  if (left > 0) to[0] = value.x;
  if (left > 1) to[1] = value.y;
  if (left > 2) to[2] = value.z;
  if (left > 3) to[3] = value.w;
}

__device__ inline float4 operator+(float4 a, float4 b) {
  return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
}

}  // namespace lockstep::cuda
