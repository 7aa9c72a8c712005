// Images with a border of zeros, and how the workspace of a convolution is divided.
#include "lockstep/kernels/cpu/conv_image.h"

namespace lockstep::cpu::LOCKSTEP_CPU_SET {
namespace {

Index offset_bytes(const WindowGeometry& g) {
  return whole_lines(Index{sizeof(Index)} * larger(g.c, g.k) * g.kernel_h * g.kernel_w);
}

Index weight_bytes(const WindowGeometry& g) {
  return whole_lines(Index{sizeof(Floats)} * g.k * g.c * g.kernel_h * g.kernel_w);
}

Index bias_bytes(const WindowGeometry& g) {
  return whole_lines(Index{sizeof(Floats)} * g.k);
}

Index image_bytes(const WindowGeometry& g) {
  const Image x = channels_of_rows(g.c, g.h, g.w, border_of_x(g));
  const Image dy = channels_of_rows(g.k, g.p, g.q, border_of_dy(g));
  return Index{sizeof(float)} * larger(x.channels * x.channel, dy.channels * dy.channel);
}

void copy_places(Index places, Index step, const float* from, float* to) {
  if (step == kGroup) {
    __builtin_memcpy(to, from, sizeof(float) * static_cast<std::size_t>(places * kGroup));
    return;
  }
  for (Index i = 0; i < places; ++i) store(to + i * kLanes, load(from + i * kGroup));
}

}  // namespace

void add_border(const Image& image, const Border& border, const float* from, float* to) {
  const Index columns = image.w - border.left - border.right;
  for (Index c = 0; c < image.channels; ++c) {
    for (Index h = 0; h < image.h; ++h) {
      float* row = to + c * image.channel + h * image.row;
      if (h < border.top || h >= image.h - border.bottom) {
        zero(row, image.w * image.place);
        continue;
      }
      zero(row, border.left * image.place);
      row += border.left * image.place;
      copy_places(columns, image.place, from, row);
      from += columns * kGroup;
      zero(row + columns * image.place, border.right * image.place);
    }
  }
}

Index x_tap_offsets(const WindowGeometry& g, const Image& image, Index* offsets) {
  Index taps = 0;
  for (Index c = 0; c < g.c; ++c) {
    for (Index r = 0; r < g.kernel_h; ++r) {
      for (Index s = 0; s < g.kernel_w; ++s)
        offsets[taps++] = c * image.channel + r * image.row + s * image.place;
    }
  }
  return taps;
}

std::size_t conv_workspace_bytes(const WindowGeometry& g) {
  return static_cast<std::size_t>(offset_bytes(g) + weight_bytes(g) + bias_bytes(g) +
                                  image_bytes(g));
}

Workspace split_workspace(const WindowGeometry& g, void* workspace) {
  auto* bytes = static_cast<unsigned char*>(workspace);
  auto* weights = bytes + offset_bytes(g);
  auto* bias = weights + weight_bytes(g);
  auto* image = bias + bias_bytes(g);
  return {reinterpret_cast<Index*>(bytes), reinterpret_cast<float*>(weights),
          reinterpret_cast<float*>(bias), reinterpret_cast<float*>(image)};
}

}  // namespace lockstep::cpu::LOCKSTEP_CPU_SET
