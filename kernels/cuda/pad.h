// Images with a border of zeros, for a library that knows only borders of equal width on opposite
// sides. Internal.
#pragma once

#include <cstdint>

#include "lockstep/core/context.h"

namespace lockstep::cuda {

/// `planes` images of h x w inside images of padded_h x padded_w, from row `top` and column `left`.
struct Frame {
  std::int64_t planes;
  int h, w, top, left, padded_h, padded_w;
};

/// Overwrites all of `padded`: x and zeros around it.
void pad_images(Context& context, const Frame& frame, const float* x, float* padded);

/// The inverse: x becomes the inner part of `padded`.
void crop_images(Context& context, const Frame& frame, const float* padded, float* x);

}  // namespace lockstep::cuda
