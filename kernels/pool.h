// 2-D max-pooling.
//
//   y[n,c,p,q] = max over r,s of x[n, c, p*stride_h + r - pad_top, q*stride_w + s - pad_left],
//   places outside x left out
//
// The first of equal values wins, in the order r, s; a NaN wins over any number, the first NaN over
// later ones. `argmax` holds r * kernel_w + s of the winner in one byte, so a window has at most
// 256 places. Every window must cover at least one place of x. Windows may overlap. Shapes: x dx
// (N,C,H,W); y dy argmax (N,C,P,Q). Layouts: on a CPU Layout::n16; on CUDA canonical. No argument
// may overlap another. Deterministic. Both throw ShapeError when the shapes do not fit.
#pragma once

#include <cstdint>

#include "lockstep/core/context.h"
#include "lockstep/core/tensor.h"
#include "lockstep/kernels/window.h"

namespace lockstep {

/// Overwrites y and argmax. `argmax` may have null data where no backward pass follows.
void maxpool2d_forward(Context& context, const Window& window, ConstFloatView x, FloatView y,
                       View<std::uint8_t> argmax);

/// Overwrites dx: each dy goes to the place that won; a place that won several windows gets their
/// sum.
void maxpool2d_backward(Context& context, const Window& window, ConstFloatView dy,
                        View<const std::uint8_t> argmax, FloatView dx);

}  // namespace lockstep
