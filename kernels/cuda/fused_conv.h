// What the fused convolution's forward and backward kernels share. Internal; only for .cu files.
//
// Forward and dx are correlations of planes in shared memory: a thread computes a small tile of
// outputs for kGroup = 4 channels in registers.
#pragma once

#include <cstddef>

#include <cuda_runtime_api.h>

#include "lockstep/kernels/fused_geometry.h"

namespace lockstep::cuda {

using fused::ConvPool;
using fused::groups_of;
using fused::kConvThreads;
using fused::kGroup;
using fused::Tile;

extern __shared__ float4 shared_memory[];

/// The elements of planes that are a thread's: every kConvThreads-th, from one to the next without
/// a division.
struct Walk {
  int rows, columns;
  int plane, row, column;
  int step_planes, step_rows, step_columns;

  __device__ Walk(int the_rows, int the_columns)
      : rows(the_rows),
        columns(the_columns),
        plane(static_cast<int>(threadIdx.x) / columns / rows),
        row(static_cast<int>(threadIdx.x) / columns % rows),
        column(static_cast<int>(threadIdx.x) % columns),
        step_planes(kConvThreads / columns / rows),
        step_rows(kConvThreads / columns % rows),
        step_columns(kConvThreads % columns) {}

  __device__ int index() const { return (plane * rows + row) * columns + column; }
  __device__ void next() {
    column += step_columns;
    row += step_rows;
    plane += step_planes;
    if (column >= columns) {
      column -= columns;
      ++row;
    }
    if (row >= rows) {
      row -= rows;
      ++plane;
    }
  }
};

/// Calls store(at, load(at)) for a thread's elements of `planes` planes, the loads of several
/// before their stores, so that they are in flight together. load is called beyond the last plane
/// too; it should have no branches around its loads.
template <class Load, class Store>
__device__ void copy_planes(Walk at, int planes, Load load, Store store) {
  constexpr int kInFlight = 4;
  while (at.plane < planes) {
    Walk ahead = at;
    decltype(load(at)) values[kInFlight];
#pragma unroll
    for (auto& value : values) {
      value = load(ahead);
      ahead.next();
    }
#pragma unroll
    for (const auto& value : values) {
      if (at.plane < planes) store(at, value);
      at.next();
    }
  }
}

/// Planes of an image with zeros around it; `x` is the first of them. `start` walks the tile.
__device__ inline void load_image(const ConvPool& e, const Tile& tile, const Walk& start,
                                  int planes, const float* x, float* to) {
  const auto load = [&](const Walk& at) {
    const int h = at.row - tile.top;
    const int w = at.column - tile.left;
    const bool inside = at.plane < planes && h >= 0 && h < e.h && w >= 0 && w < e.w;
    const float value = x[inside ? (at.plane * e.h + h) * e.w + w : 0];
    return inside ? value : 0.0F;
  };
  copy_planes(start, planes, load, [&](const Walk& at, float value) {
    to[at.plane * tile.plane + at.row * tile.pitch + at.column] = value;
  });
}

/// sums[i][j] += sum over r, s of plane[i + r][j + s] * weights[r][s], for four channels.
template <int kKernel, int kTile>
__device__ void correlate(const float* plane, int pitch, const float4* weights,
                          float4 (&sums)[kTile][kTile]) {
  constexpr int kSide = kTile + kKernel - 1;
  float piece[kSide][kSide];
#pragma unroll
  for (int i = 0; i < kSide; ++i) {
    if constexpr (kTile % 2 == 0) {
      // Tiles begin at even columns of even rows' length.
      static_assert(kSide % 2 == 0);
#pragma unroll
      for (int j = 0; j < kSide; j += 2) {
        const float2 two = *reinterpret_cast<const float2*>(plane + i * pitch + j);
        piece[i][j] = two.x;
        piece[i][j + 1] = two.y;
      }
    } else {
#pragma unroll
      for (int j = 0; j < kSide; ++j) piece[i][j] = plane[i * pitch + j];
    }
  }
#pragma unroll
  for (int r = 0; r < kKernel; ++r) {
#pragma unroll
    for (int s = 0; s < kKernel; ++s) {
      const float4 weight = weights[r * kKernel + s];
#pragma unroll
      for (int i = 0; i < kTile; ++i) {
#pragma unroll
        for (int j = 0; j < kTile; ++j) {
          const float value = piece[i + r][j + s];
          float4& sum = sums[i][j];
          sum.x = fmaf(value, weight.x, sum.x);
          sum.y = fmaf(value, weight.y, sum.y);
          sum.z = fmaf(value, weight.z, sum.z);
          sum.w = fmaf(value, weight.w, sum.w);
        }
      }
    }
  }
}

__device__ inline float channel_of(const float4& value, int channel) {
  return channel == 0 ? value.x : channel == 1 ? value.y : channel == 2 ? value.z : value.w;
}

inline std::size_t correlation_bytes(const ConvPool& e, const Tile& tile, int channels) {
  return static_cast<std::size_t>(e.planes_at_once(tile, channels)) *
         static_cast<std::size_t>(e.plane_bytes(tile));
}

inline unsigned blocks_over(int items) {
  return static_cast<unsigned>((items + kConvThreads - 1) / kConvThreads);
}

}  // namespace lockstep::cuda
