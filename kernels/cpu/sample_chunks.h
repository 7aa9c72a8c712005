// Samples one by one, for the sparse gradients: N16 and back, in chunks of channels.
#pragma once

#include "lockstep/kernels/cpu/conv_image.h"

namespace lockstep::cpu::LOCKSTEP_CPU_SET {

/// A vector of half the width, where that is 16: it serves where a row of the kernel is short.
typedef float HalfFloats __attribute__((vector_size(kLanes == 16 ? 32 : kLanes * 4)));

template <class V>
constexpr Index kWidth = sizeof(V) / sizeof(float);

/// Channels [first, first + count), and how their image and patches lie.
struct Chunk {
  Index first, count;
  Index row;         ///< floats of a row of x with its border
  Index sample;      ///< of a sample's x, with room for the rest of a vector behind its last row
  Index vectors;     ///< of a row of the kernel
  Index packed_row;  ///< floats of those
};

/// The vector that a chunk's rows are cut into, and the channels of a chunk.
LOCKSTEP_INLINE Index chunk_width(const WindowGeometry& conv) {
  return conv.c < 12 ? kWidth<HalfFloats> : kWidth<Floats>;
}

LOCKSTEP_INLINE Index whole_vectors(Index floats) {
  return (floats + kLanes - 1) / kLanes * kLanes;
}

LOCKSTEP_INLINE Chunk chunk_at(const WindowGeometry& conv, Index first) {
  const Index width = chunk_width(conv);
  const Index count = smaller(conv.c - first, width);
  const BorderedImage image = bordered(conv);
  const Index row = image.w * count;
  const Index vectors = (conv.kernel_w * count + width - 1) / width;
  return {.first = first,
          .count = count,
          .row = row,
          .sample = whole_vectors(image.h * row + kLanes - 1),
          .vectors = vectors,
          .packed_row = vectors * width};
}

/// Where the elements [column, channel] of a row lie in N16, relative to its first.
void list_row(const WindowGeometry& conv, const Chunk& chunk, Index* to);

/// x of kLanes samples and the channels of a chunk: [channel][row][column][16] becomes
/// [sample][row][column, channel] inside its border, which is zero.
void to_samples(const WindowGeometry& conv, const Chunk& chunk, const Index* element,
                const float* x, float* to);

/// The way back, without the border.
void from_samples(const WindowGeometry& conv, const Chunk& chunk, const Index* element,
                  const float* from, float* dx);

/// w (K,C,R,S) of a chunk as [output][row][column, channel], zero up to a whole vector.
void pack_weights(const WindowGeometry& conv, const Chunk& chunk, const float* w, float* packed);

/// The way back for sums, into dw.
void unpack_sums(const WindowGeometry& conv, const Chunk& chunk, const float* packed, float* dw,
                 bool add);

}  // namespace lockstep::cpu::LOCKSTEP_CPU_SET
