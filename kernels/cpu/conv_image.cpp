// Images with a border of zeros, and how the workspace of a convolution is divided.
#include "lockstep/kernels/cpu/conv_image.h"

namespace lockstep::cpu::LOCKSTEP_CPU_SET {
namespace {

constexpr std::size_t kLine = 64;

std::size_t round_to_lines(std::size_t bytes) {
  return (bytes + kLine - 1) / kLine * kLine;
}

Index larger(Index a, Index b) {
  return a > b ? a : b;
}

std::size_t offset_bytes(const WindowGeometry& g) {
  return round_to_lines(sizeof(Index) *
                        static_cast<std::size_t>(larger(g.c, g.k) * g.kernel_h * g.kernel_w));
}

std::size_t weight_bytes(const WindowGeometry& g) {
  return round_to_lines(sizeof(float) *
                        static_cast<std::size_t>(g.k * g.c * g.kernel_h * g.kernel_w));
}

std::size_t image_bytes(const WindowGeometry& g) {
  const Index x = floats_in(with_border({g.c, g.h, g.w}, border_of_x(g)));
  const Index dy = floats_in(with_border({g.k, g.p, g.q}, border_of_dy(g)));
  return sizeof(float) * static_cast<std::size_t>(larger(x, dy));
}

float* zeros(Index count, float* to) {
  __builtin_memset(to, 0, sizeof(float) * static_cast<std::size_t>(count * kGroup));
  return to + count * kGroup;
}

}  // namespace

const float* bordered(const Image& image, const Border& border, const float* from, float* space) {
  if (border.top + border.left + border.bottom + border.right == 0) return from;
  float* to = space;
  const Index row = image.w * kGroup;
  const Index bordered_row = border.left + image.w + border.right;
  for (Index channel = 0; channel < image.channels; ++channel) {
    to = zeros(border.top * bordered_row, to);
    for (Index h = 0; h < image.h; ++h) {
      to = zeros(border.left, to);
      __builtin_memcpy(to, from, sizeof(float) * static_cast<std::size_t>(row));
      from += row;
      to = zeros(border.right, to + row);
    }
    to = zeros(border.bottom * bordered_row, to);
  }
  return space;
}

Index x_tap_offsets(const WindowGeometry& g, Index* offsets) {
  const Image in = with_border({g.c, g.h, g.w}, border_of_x(g));
  Index taps = 0;
  for (Index c = 0; c < g.c; ++c) {
    for (Index r = 0; r < g.kernel_h; ++r) {
      for (Index s = 0; s < g.kernel_w; ++s) offsets[taps++] = ((c * in.h + r) * in.w + s) * kGroup;
    }
  }
  return taps;
}

std::size_t conv_workspace_bytes(const WindowGeometry& g) {
  return offset_bytes(g) + weight_bytes(g) + image_bytes(g);
}

Workspace split_workspace(const WindowGeometry& g, void* workspace) {
  auto* bytes = static_cast<unsigned char*>(workspace);
  auto* weights = bytes + offset_bytes(g);
  auto* image = weights + weight_bytes(g);
  return {reinterpret_cast<Index*>(bytes), reinterpret_cast<float*>(weights),
          reinterpret_cast<float*>(image)};
}

}  // namespace lockstep::cpu::LOCKSTEP_CPU_SET
