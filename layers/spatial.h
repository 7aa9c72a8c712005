// What Conv2d and MaxPool2d share: their window from extents and padding, and its words in
// summaries. Internal.
#pragma once

#include <string>

#include "lockstep/layers/descriptions.h"

namespace lockstep {

/// The window of `operation` over a sample (C, H, W). Throws UsageError for extents that cannot be
/// and ShapeError when the kernel does not fit.
[[nodiscard]] Window make_window(const char* operation, const Shape& sample, Extent2d kernel,
                                 Extent2d stride, const Padding& padding);

/// "stride 1, same", "stride 2x1, padding 1", "stride 2".
[[nodiscard]] std::string stride_and_padding(Extent2d stride, const Padding& padding);

}  // namespace lockstep
