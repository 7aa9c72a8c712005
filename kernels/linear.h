// The fully connected layer.
//
//   y[n,o] = b[o] + sum over i of x[n,i] * w[o,i]
//
// Shapes: x dx (N,D), w dw (O,D), b db (O), y dy (N,O). x may have more axes: all but the first
// count as D. Layouts: on a CPU x, y, dx, dy in Layout::n16; on CUDA canonical. Parameters always
// canonical. No argument may overlap another. Deterministic. All throw ShapeError when the shapes
// do not fit.
#pragma once

#include "lockstep/core/context.h"
#include "lockstep/core/tensor.h"

namespace lockstep {

/// Overwrites y. `b` may have null data: no bias.
void linear_forward(Context& context, ConstFloatView x, ConstFloatView w, ConstFloatView b,
                    FloatView y);

/// Overwrites dx.
void linear_backward_data(Context& context, ConstFloatView dy, ConstFloatView w, FloatView dx);

/// Overwrites dw and db with the gradients summed over the batch, or adds to them when
/// `accumulate`. `db` may have null data.
void linear_backward_parameters(Context& context, ConstFloatView x, ConstFloatView dy, FloatView dw,
                                FloatView db, bool accumulate);

}  // namespace lockstep
