// y = max(x, 0); NaN passes through. x, y, dx, dy have one shape and one layout, any.
#pragma once

#include "lockstep/core/context.h"
#include "lockstep/core/tensor.h"

namespace lockstep {

/// Overwrites y. y may be x. Throws ShapeError when shapes or layouts differ.
void relu_forward(Context& context, ConstFloatView x, FloatView y);

/// Overwrites dx with dy where y > 0 or y is NaN, else 0. dx may be dy. Throws ShapeError as above.
void relu_backward(Context& context, ConstFloatView y, ConstFloatView dy, FloatView dx);

}  // namespace lockstep
