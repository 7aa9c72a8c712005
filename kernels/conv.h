// 2-D convolution (cross-correlation, as every deep-learning library means it).
//
//   y[n,k,p,q] = b[k] + sum over c,r,s of x[n, c, p*stride_h + r - pad_top, q*stride_w + s -
//   pad_left] * w[k,c,r,s]
//
// Shapes: x (N,C,H,W), w (K,C,R,S), b (K), y (N,K,P,Q). Outside the image x counts as 0.
// Layouts: on a CPU x, y, dx, dy in Layout::n16; on CUDA canonical. Parameters always canonical.
// No argument may overlap another. Deterministic. All throw ShapeError when the shapes do not fit.
#pragma once

#include "lockstep/core/context.h"
#include "lockstep/core/tensor.h"
#include "lockstep/kernels/window.h"

namespace lockstep {

/// Overwrites y. `b` may have null data: no bias.
void conv2d_forward(Context& context, const Window& window, ConstFloatView x, ConstFloatView w,
                    ConstFloatView b, FloatView y);

/// Overwrites dx with the gradient with respect to x.
void conv2d_backward_data(Context& context, const Window& window, ConstFloatView dy,
                          ConstFloatView w, FloatView dx);

/// Gradients with respect to w and b, summed over the batch. They overwrite dw and db, or are added
/// to them when `accumulate`. `db` may have null data.
void conv2d_backward_parameters(Context& context, const Window& window, ConstFloatView x,
                                ConstFloatView dy, FloatView dw, FloatView db, bool accumulate);

/// Bytes of workspace that the three calls need for these shapes on this context. On CUDA it also
/// prepares the context for them: whoever captures the calls asks first.
[[nodiscard]] std::size_t conv2d_workspace_bytes(Context& context, const Window& window,
                                                 const Shape& x, const Shape& w);

}  // namespace lockstep
