// Between host tensors and what a device computes on.
#pragma once

#include "lockstep/core/context.h"
#include "lockstep/core/tensor.h"

namespace lockstep {

/// Copies x to y, changing the layout; both in device memory, on CUDA both canonical. y's first
/// extent may be larger than x's: the rest becomes zeros (a batch filled up to whole groups of 16);
/// or smaller: the rest of x is left out. The other extents are equal, else ShapeError. No overlap.
void convert_layout(Context& context, ConstFloatView x, FloatView y);

}  // namespace lockstep
