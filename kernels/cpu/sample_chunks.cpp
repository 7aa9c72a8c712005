// Transposes between N16 and samples one by one.
#include "lockstep/kernels/cpu/sample_chunks.h"

namespace lockstep::cpu::LOCKSTEP_CPU_SET {

void list_row(const WindowGeometry& conv, const Chunk& chunk, Index* to) {
  for (Index column = 0; column < conv.w; ++column) {
    for (Index c = 0; c < chunk.count; ++c) *to++ = (c * conv.h * conv.w + column) * kGroup;
  }
}

void to_samples(const WindowGeometry& conv, const Chunk& chunk, const Index* element,
                const float* x, float* to) {
  const Index elements = conv.w * chunk.count;
  for (Index h = 0; h < conv.h; ++h) {
    const float* from = x + (chunk.first * conv.h + h) * conv.w * kGroup;
    float* row = to + (conv.pad_top + h) * chunk.row + conv.pad_left * chunk.count;
    for (Index i = 0; i < elements; i += kLanes) {
      const Index here = smaller(kLanes, elements - i);
      Floats v[kLanes];
      if (here == kLanes) {
        for (Index j = 0; j < kLanes; ++j) v[j] = load(from + element[i + j]);
      } else {
        for (Index j = 0; j < kLanes; ++j) v[j] = j < here ? load(from + element[i + j]) : Floats{};
      }
      transpose(v);
      for (Index n = 0; n < kLanes; ++n) store(row + n * chunk.sample + i, v[n]);
    }
  }
}

void from_samples(const WindowGeometry& conv, const Chunk& chunk, const Index* element,
                  const float* from, float* dx) {
  const Index elements = conv.w * chunk.count;
  for (Index h = 0; h < conv.h; ++h) {
    const float* row = from + (conv.pad_top + h) * chunk.row + conv.pad_left * chunk.count;
    float* to = dx + (chunk.first * conv.h + h) * conv.w * kGroup;
    for (Index i = 0; i < elements; i += kLanes) {
      const Index here = smaller(kLanes, elements - i);
      Floats v[kLanes];
      for (Index n = 0; n < kLanes; ++n) v[n] = load(row + n * chunk.sample + i);
      transpose(v);
      if (here == kLanes) {
        for (Index j = 0; j < kLanes; ++j) store(to + element[i + j], v[j]);
      } else {
        for (Index j = 0; j < here; ++j) store(to + element[i + j], v[j]);
      }
    }
  }
}

void pack_weights(const WindowGeometry& conv, const Chunk& chunk, const float* w, float* packed) {
  zero(packed, conv.k * conv.kernel_h * chunk.packed_row);
  for (Index k = 0; k < conv.k; ++k) {
    for (Index c = 0; c < chunk.count; ++c) {
      for (Index r = 0; r < conv.kernel_h; ++r) {
        for (Index s = 0; s < conv.kernel_w; ++s) {
          packed[(k * conv.kernel_h + r) * chunk.packed_row + s * chunk.count + c] =
              w[((k * conv.c + chunk.first + c) * conv.kernel_h + r) * conv.kernel_w + s];
        }
      }
    }
  }
}

void unpack_sums(const WindowGeometry& conv, const Chunk& chunk, const float* packed, float* dw,
                 bool add) {
  for (Index k = 0; k < conv.k; ++k) {
    for (Index c = 0; c < chunk.count; ++c) {
      for (Index r = 0; r < conv.kernel_h; ++r) {
        for (Index s = 0; s < conv.kernel_w; ++s) {
          const float sum =
              packed[(k * conv.kernel_h + r) * chunk.packed_row + s * chunk.count + c];
          float& to = dw[((k * conv.c + chunk.first + c) * conv.kernel_h + r) * conv.kernel_w + s];
          to = add ? to + sum : sum;
        }
      }
    }
  }
}

}  // namespace lockstep::cpu::LOCKSTEP_CPU_SET
