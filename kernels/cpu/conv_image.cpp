// Images with a border of zeros; conv_image.h says how they lie.
#include "lockstep/kernels/cpu/conv_image.h"

namespace lockstep::cpu::LOCKSTEP_CPU_SET {
namespace {

void add_border_to_part(const WindowGeometry& g, const BorderedImage& image, const float* x,
                        float* to) {
  for (Index c = 0; c < g.c; ++c) {
    for (Index h = 0; h < image.h; ++h) {
      float* row = to + c * image.channel + h * image.row;
      if (h < image.top || h >= image.top + g.h) {
        zero(row, image.w * kLanes);
        continue;
      }
      zero(row, image.left * kLanes);
      row += image.left * kLanes;
      for (Index w = 0; w < g.w; ++w, x += kGroup) store(row + w * kLanes, load(x));
      zero(row + g.w * kLanes, (image.w - image.left - g.w) * kLanes);
    }
  }
}

}  // namespace

void add_border(const WindowGeometry& g, const BorderedImage& image, const float* x, float* to) {
  for (int part = 0; part < kParts; ++part)
    add_border_to_part(g, image, x + part * kLanes, to + part * image.floats());
}

}  // namespace lockstep::cpu::LOCKSTEP_CPU_SET
