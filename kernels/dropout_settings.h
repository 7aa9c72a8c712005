// Internal. The numbers that both twins of dropout compute with.
#pragma once

#include <cmath>
#include <cstdint>

namespace lockstep {

/// What is kept is multiplied by this.
inline float dropout_scale(float rate) {
  return 1.0F / (1.0F - rate);
}

/// uniform_float(word) >= rate means word >> 8 >= this; exact, since both sides are multiplied by a
/// power of two.
inline std::uint32_t dropout_threshold(float rate) {
  return static_cast<std::uint32_t>(std::ceil(rate * 0x1p24F));
}

}  // namespace lockstep
