// Grids that several kernels use. Internal; only for .cu files.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

namespace lockstep::cuda {

constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xffffffffU;

struct Launch {
  dim3 grid, block;
};

/// Threads for `planes` images (of a sample and channel) of `places` elements each: threadIdx.x and
/// blockIdx.y run along an image, threadIdx.y and blockIdx.x over the images, as PlaneThread says.
/// Small images share a block, so that no image size leaves most threads idle.
inline Launch over_planes(std::int64_t planes, std::int64_t places) {
  constexpr unsigned kBlock = 256;
  unsigned along = 1;
  while (along < kBlock && along < places) along *= 2;
  const unsigned across = kBlock / along;
  const std::int64_t blocks_along = (places + along - 1) / along;
  constexpr std::int64_t kMostBlocksAlong = 65535;
  return {dim3(static_cast<unsigned>((planes + across - 1) / across),
               static_cast<unsigned>(blocks_along < kMostBlocksAlong ? blocks_along
                                                                     : kMostBlocksAlong)),
          dim3(along, across)};
}

/// What a thread of over_planes has to do: the places first, first + step, ... of one image, which
/// has at most 2^30 of them (extents.h).
struct PlaneThread {
  std::int64_t plane;
  int first, step;
};

__device__ inline PlaneThread plane_thread() {
  return {static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y,
          static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x),
          static_cast<int>(gridDim.y * blockDim.x)};
}

/// The sum over a warp, in every lane, by the same tree for all lanes.
template <class T>
__device__ T warp_sum(T value) {
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(kAllLanes, value, distance);
  }
  return value;
}

/// The sum over a block of whole warps, valid in thread 0; every thread must arrive. `partial` has
/// a place in shared memory for each warp, at most kWarp, and is free again after the next
/// __syncthreads().
template <class T>
__device__ T block_sum(T value, T* partial) {
  value = warp_sum(value);
  const unsigned lane = threadIdx.x % kWarp;
  const unsigned warp = threadIdx.x / kWarp;
  if (lane == 0) partial[warp] = value;
  __syncthreads();
  if (warp > 0) return T{};
  return warp_sum(lane < blockDim.x / kWarp ? partial[lane] : T{});
}

/// Whether memory can be read and written in units of 16 bytes.
inline bool aligned_to_16(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0;
}

}  // namespace lockstep::cuda
