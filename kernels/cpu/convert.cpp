// Copies between the canonical layout and Layout::n16.
#include <algorithm>
#include <cstring>

#include "lockstep/kernels/cpu/plain.h"

namespace lockstep::cpu {
namespace {

/// Where element e of sample n lies.
std::int64_t offset(Layout layout, std::int64_t features, std::int64_t n, std::int64_t e) {
  return layout == Layout::n16 ? n / kN16 * features * kN16 + e * kN16 + n % kN16
                               : n * features + e;
}

}  // namespace

void convert_layout(ConstFloatView x, FloatView y) {
  const std::int64_t samples = y.shape[0];
  const std::int64_t copied = std::min(x.shape[0], samples);
  const std::int64_t features = y.shape.without_first().count();
  if (x.layout == y.layout) {
    const auto size = static_cast<std::size_t>(copied * features);
    if (size > 0) std::memcpy(y.data, x.data, size * sizeof(float));
    std::fill(y.data + size, y.data + samples * features, 0.0F);
    return;
  }
  // Group by group, so that the side that is read or written with a stride stays in cache.
  for (std::int64_t first = 0; first < samples; first += kN16) {
    const std::int64_t end = std::min<std::int64_t>(first + kN16, samples);
    for (std::int64_t e = 0; e < features; ++e) {
      for (std::int64_t n = first; n < end; ++n) {
        y.data[offset(y.layout, features, n, e)] =
            n < copied ? x.data[offset(x.layout, features, n, e)] : 0.0F;
      }
    }
  }
}

}  // namespace lockstep::cpu
