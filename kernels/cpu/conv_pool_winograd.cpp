// Convolution 3 x 3 [+ ReLU] + max-pooling 2 x 2 by Winograd's F(2x2, 3x3).
//
// The four outputs of a window are 36 multiplications of the 4 x 4 patch of x under it, for every
// pair of channels. In the basis of Winograd's transforms they are 16:
//
//   d (4 x 4 of x)  --B^T d B-->  V  -.
//                                      +-> 16 products, summed over c: M  --A^T M A-->  2 x 2
//   g (3 x 3 of w)  --G g G^T-->  U  -'
//
//         | 1  0 -1  0 |        | 1    0    0  |
//   B^T = | 0  1  1  0 |    G = | 1/2  1/2 1/2 |    A^T = | 1  1  1  0 |
//         | 0 -1  1  0 |        | 1/2 -1/2 1/2 |          | 0  1 -1 -1 |
//         | 0  1  0 -1 |        | 0    0    1  |
//
// (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2015.) A patch is one
// pooling window's, so the four outputs meet in registers. Sums differ from the direct ones by
// rounding, and an infinity may become NaN.
#include "lockstep/kernels/cpu/conv_image.h"
#include "lockstep/kernels/cpu/conv_pool.h"
#include "lockstep/kernels/cpu/conv_tile.h"
#include "lockstep/kernels/cpu/pool_row.h"

namespace lockstep::cpu::LOCKSTEP_CPU_SET {
namespace {

/// Elements of a transformed patch, and floats from one patch to the next: a vector more, so that
/// one element of many patches does not fall into a few sets of the cache.
constexpr int kElements = 16;
constexpr int kPatch = (kElements + 1) * kLanes;
/// Outputs whose sums are kept in registers for some patches.
constexpr int kOutputs = 4;
constexpr int kPatches = tile_columns(kOutputs);

/// Up to as many channels sums are so short that, with 32 registers, many stores in a row hold up
/// what comes behind them (conv_tile.cpp).
constexpr Index kFewChannels = 16;

/// Patches that are best taken together.
Index patches_at_once(Index channels) {
  return kLanes == 16 && channels <= kFewChannels ? 2 : kPatches;
}

/// The parts of the workspace.
struct Space {
  float* u;      ///< [tiles of kOutputs outputs][element][c][outputs of the tile]
  float* v;      ///< [c][kPatches][kPatch]
  float* m;      ///< [kOutputs][kPatches][kPatch]
  float* image;  ///< one group's x with its border
};

struct Sizes {
  Index u, v, m, image;  ///< floats

  [[nodiscard]] Index sum() const { return u + v + m + image; }
};

Sizes sizes_of(const WindowGeometry& conv) {
  return {.u = conv.k * conv.c * kElements,
          .v = conv.c * kPatches * kPatch,
          .m = Index{kOutputs} * kPatches * kPatch,
          .image = kParts * bordered(conv).floats()};
}

Space split(const Sizes& sizes, void* workspace) {
  auto* u = static_cast<float*>(workspace);
  float* v = u + sizes.u;
  float* m = v + sizes.v;
  return {u, v, m, m + sizes.m};
}

/// G g G^T of one filter; elements lie `step` floats apart in `to`.
void transform_filter(const float* g, Index step, float* to) {
  float rows[4][3];
  for (int s = 0; s < 3; ++s) {
    const float sum = g[s] + g[6 + s];
    rows[0][s] = g[s];
    rows[1][s] = 0.5F * (sum + g[3 + s]);
    rows[2][s] = 0.5F * (sum - g[3 + s]);
    rows[3][s] = g[6 + s];
  }
  for (int r = 0; r < 4; ++r) {
    const float sum = rows[r][0] + rows[r][2];
    float* element = to + r * 4 * step;
    element[0] = rows[r][0];
    element[step] = 0.5F * (sum + rows[r][1]);
    element[2 * step] = 0.5F * (sum - rows[r][1]);
    element[3 * step] = rows[r][2];
  }
}

/// In tiles of kOutputs outputs; the last one has what is left.
void transform_filters(const WindowGeometry& conv, const float* w, float* u) {
  for (Index k = 0; k < conv.k; k += kOutputs) {
    const Index outputs = smaller(kOutputs, conv.k - k);
    for (Index i = 0; i < outputs; ++i) {
      for (Index c = 0; c < conv.c; ++c) {
        transform_filter(w + ((k + i) * conv.c + c) * 9, conv.c * outputs,
                         u + k * conv.c * kElements + c * outputs + i);
      }
    }
  }
}

/// B^T d B of one channel's patches side by side; rows of d lie `row` floats apart.
[[gnu::noinline]] void transform_patches(Index patches, const float* d, Index row, float* v) {
  for (Index patch = 0; patch < patches; ++patch, d += 2 * kLanes, v += kPatch) {
    Floats t[4][4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const Floats d0 = load(d + j * kLanes);
      const Floats d1 = load(d + row + j * kLanes);
      const Floats d2 = load(d + 2 * row + j * kLanes);
      const Floats d3 = load(d + 3 * row + j * kLanes);
      t[0][j] = d0 - d2;
      t[1][j] = d1 + d2;
      t[2][j] = d2 - d1;
      t[3][j] = d1 - d3;
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      float* element = v + i * 4 * kLanes;
      store(element, t[i][0] - t[i][2]);
      store(element + kLanes, t[i][1] + t[i][2]);
      store(element + 2 * kLanes, t[i][2] - t[i][1]);
      store(element + 3 * kLanes, t[i][1] - t[i][3]);
    }
  }
}

/// All elements of M for some outputs and patches: M[e] = sum over c of U[e][c] * V[e][c].
template <int outputs, int patches>
[[gnu::noinline]] void multiply(Index channels, const float* u, const float* v, float* m) {
  for (int element = 0; element < kElements; ++element, v += kLanes, m += kLanes) {
    Floats total[outputs][patches] = {};
    const float* end = u + channels * outputs;
    const float* channel = v;
    do {
      add_tap(total, channel, kPatch, u);
      u += outputs;
      channel += kPatches * kPatch;
    } while (u != end);
#pragma GCC unroll 4
    for (int i = 0; i < outputs; ++i) {
#pragma GCC unroll 12
      for (int j = 0; j < patches; ++j) store(m + (i * kPatches + j) * kPatch, total[i][j]);
    }
  }
}

template <int outputs, int patches = kPatches>
void multiply_patches(Index wanted, Index channels, const float* u, const float* v, float* m) {
  if constexpr (patches > 1) {
    if (wanted < patches) return multiply_patches<outputs, patches - 1>(wanted, channels, u, v, m);
  }
  multiply<outputs, patches>(channels, u, v, m);
}

template <int outputs = kOutputs>
void multiply_outputs(Index wanted, Index patches, Index channels, const float* u, const float* v,
                      float* m) {
  if constexpr (outputs > 1) {
    if (wanted < outputs) return multiply_outputs<outputs - 1>(wanted, patches, channels, u, v, m);
  }
  multiply_patches<outputs>(patches, channels, u, v, m);
}

/// The largest of the four outputs A^T M A + bias.
LOCKSTEP_INLINE Best best_of_patch(const float* m, Floats bias) {
  Floats upper[4];
  Floats lower[4];
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    Floats m1 = load(m + (4 + j) * kLanes);
    if (j == 1) m1 += bias;  // this element counts once in each of the four
    const Floats m2 = load(m + (8 + j) * kLanes);
    upper[j] = load(m + j * kLanes) + (m1 + m2);
    lower[j] = (m1 - m2) - load(m + (12 + j) * kLanes);
  }
  Best best{upper[0] + (upper[1] + upper[2]), Ints{}};
  consider(best, (upper[1] - upper[2]) - upper[3], 1);
  consider(best, lower[0] + (lower[1] + lower[2]), 2);
  consider(best, (lower[1] - lower[2]) - lower[3], 3);
  return best;
}

/// One output's windows side by side.
[[gnu::noinline]] void pool_patches(Index patches, const float* m, Floats bias, bool relu, float* y,
                                    std::uint8_t* argmax) {
  for (Index patch = 0; patch < patches; ++patch, m += kPatch) {
    finish(best_of_patch(m, bias), relu, y + patch * kGroup,
           argmax ? argmax + patch * kGroup : nullptr);
  }
}

}  // namespace

std::size_t conv_pool_winograd_bytes(const WindowGeometry& conv) {
  return sizeof(float) * static_cast<std::size_t>(sizes_of(conv).sum());
}

void conv_pool_forward_winograd(const WindowGeometry& conv, const WindowGeometry& pool, bool relu,
                                const float* x, const float* w, const float* b, float* y,
                                std::uint8_t* argmax, void* workspace) {
  const Space space = split(sizes_of(conv), workspace);
  const BorderedImage in = bordered(conv);
  const Index most = patches_at_once(conv.c);
  transform_filters(conv, w, space.u);
  for (Index group = 0; group < conv.groups; ++group) {
    add_border(conv, in, x + group * conv.c * conv.h * conv.w * kGroup, space.image);
    for (Index p = 0; p < pool.p; ++p) {
      for (int part = 0; part < kParts; ++part) {
        const float* rows = space.image + part * in.floats() + 2 * p * in.row;
        Index patches = 0;
        Index tiles = (pool.q + most - 1) / most;
        for (Index q = 0; q < pool.q; q += patches, --tiles) {
          patches = (pool.q - q + tiles - 1) / tiles;
          for (Index c = 0; c < conv.c; ++c) {
            transform_patches(patches, rows + c * in.channel + 2 * q * kLanes, in.row,
                              space.v + c * kPatches * kPatch);
          }
          for (Index k = 0; k < conv.k; k += kOutputs) {
            const Index outputs = smaller(kOutputs, conv.k - k);
            multiply_outputs(outputs, patches, conv.c, space.u + k * conv.c * kElements, space.v,
                             space.m);
            for (Index i = 0; i < outputs; ++i) {
              const Floats bias = b ? broadcast(b[k + i]) : Floats{};
              const Index at =
                  (((group * conv.k + k + i) * pool.p + p) * pool.q + q) * kGroup + part * kLanes;
              pool_patches(patches, space.m + i * kPatches * kPatch, bias, relu, y + at,
                           argmax ? argmax + at : nullptr);
            }
          }
        }
      }
    }
  }
}

}  // namespace lockstep::cpu::LOCKSTEP_CPU_SET
