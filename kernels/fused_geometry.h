// Internal. Sizes of the fused operations that the checks and the kernels share. None depends on
// the number of shards.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lockstep/kernels/fused.h"

namespace lockstep::fused {

/// A plane of an image, or of a gradient, in shared memory, with its border: row i holds row i -
/// top of the plane.
struct Tile {
  int rows = 0, pitch = 0, top = 0, left = 0;
  int plane = 0;  ///< floats from one plane to the next
};

/// Output channels, and input channels, that a block of threads computes at once.
inline constexpr int kGroup = static_cast<int>(kFusedChannels);
inline constexpr int kConvThreads = 128;
/// An output tile of dx along one axis.
inline constexpr int kDataTile = 2;

constexpr int groups_of(int channels) {
  return (channels + kGroup - 1) / kGroup;
}

/// How a batch is cut for the sums over it: parts of equal size but for the last. At most `most`,
/// each a multiple of `unit` samples.
struct Cut {
  int samples = 0, parts = 0;
};

constexpr Cut cut_batch(int samples, int most, int unit) {
  const int units = (samples + unit - 1) / unit;
  const int size = (units + most - 1) / most * unit;
  return {size, (samples + size - 1) / size};
}

constexpr Cut cut_conv_batch(int samples) {
  return cut_batch(samples, 32, 1);
}

/// x is (n,c,h,w), y (n,k,p,q).
struct ConvPool {
  int n = 0, c = 0, h = 0, w = 0, k = 0, p = 0, q = 0;
  int kernel = 0, pool = 0, pad_top = 0, pad_left = 0;

  /// The image with its border, so far as the pooled windows see it.
  [[nodiscard]] constexpr Tile image() const {
    const int pitch = (q * pool + kernel - 1 + 1) / 2 * 2;
    const int rows = p * pool + kernel - 1;
    return {rows, pitch, pad_top, pad_left, rows * pitch};
  }
  /// The same with planes an odd number of floats apart, so that threads of different channels meet
  /// different banks of memory.
  [[nodiscard]] constexpr Tile staggered_image() const {
    Tile tile = image();
    tile.plane |= 1;
    return tile;
  }
  /// The gradient of the convolution's output, so far as the tiles of dx see it.
  [[nodiscard]] constexpr Tile gradient() const {
    const int rows = data_tiles(h) * kDataTile + kernel - 1;
    const int pitch = (data_tiles(w) * kDataTile + kernel - 1 + 1) / 2 * 2;
    return {rows, pitch, kernel - 1 - pad_top, kernel - 1 - pad_left, rows * pitch};
  }
  [[nodiscard]] static constexpr int data_tiles(int extent) {
    return (extent + kDataTile - 1) / kDataTile;
  }

  /// Shared memory of one input plane of a correlation, with its weights.
  [[nodiscard]] constexpr int plane_bytes(const Tile& tile) const {
    return (tile.plane + kGroup * kernel * kernel) * static_cast<int>(sizeof(float));
  }
  /// Planes of a correlation that are in shared memory at once.
  [[nodiscard]] constexpr int planes_at_once(const Tile& tile, int channels) const {
    return std::min(channels, static_cast<int>(kFusedSharedBytes) / plane_bytes(tile));
  }
  /// Sums that a thread of the parameters' gradients keeps: a kernel, and the bias.
  [[nodiscard]] constexpr int parameter_sums() const { return kernel * kernel + 1; }
  /// Shared memory of the parameters' gradients: planes of the image and the pooled gradients of as
  /// many channels, and after them the threads' sums.
  [[nodiscard]] constexpr int parameter_bytes() const {
    const int values = std::min(c, kGroup) * staggered_image().plane;
    const int windows = std::min(k, kGroup) * p * q;
    const int sums = parameter_sums() * kConvThreads;
    return std::max(values + 2 * windows, sums) * static_cast<int>(sizeof(float));
  }
};

/// For windows that fit; see conv_pool_is_fused.
inline ConvPool conv_pool_of(const Window& conv, const Window& pool, const Shape& x,
                             const Shape& w) {
  return {.n = static_cast<int>(x[0]),
          .c = static_cast<int>(x[1]),
          .h = static_cast<int>(x[2]),
          .w = static_cast<int>(x[3]),
          .k = static_cast<int>(w[0]),
          .p = static_cast<int>(pool.output_h(conv.output_h(x[2]))),
          .q = static_cast<int>(pool.output_w(conv.output_w(x[3]))),
          .kernel = static_cast<int>(conv.kernel_h),
          .pool = static_cast<int>(pool.kernel_h),
          .pad_top = static_cast<int>(conv.pad_top),
          .pad_left = static_cast<int>(conv.pad_left)};
}

inline constexpr int kLinearColumns = 128;  ///< of x, one for each thread of a block
inline constexpr int kLinearSamples = 16;   ///< whose dy are in shared memory at once

constexpr Cut cut_linear_batch(int samples) {
  return cut_batch(samples, 32, kLinearSamples);
}

constexpr std::int64_t column_blocks(std::int64_t columns) {
  return (columns + kLinearColumns - 1) / kLinearColumns;
}

}  // namespace lockstep::fused
