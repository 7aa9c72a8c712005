// The three sums of a convolution without its bias: by cuDNN, and by plain kernels of our own where
// it is missing. Both make the same functions; conv.cpp takes one set of them. Internal.
//
// x dx (N,C,H,W), w dw (K,C,R,S), y dy (N,K,P,Q) as in kernels/conv.h, all canonical.
#pragma once

#include <cstddef>

#include "lockstep/core/context.h"
#include "lockstep/core/tensor.h"
#include "lockstep/kernels/window.h"

namespace lockstep::cuda {

/// cuDNN with fixed, deterministic algorithms. Throws DeviceError with the library's text.
namespace cudnn {

/// Overwrites y.
void conv_forward(Context& context, const Window& window, ConstFloatView x, ConstFloatView w,
                  FloatView y);
/// Overwrites dx.
void conv_backward_data(Context& context, const Window& window, ConstFloatView dy, ConstFloatView w,
                        FloatView dx);
/// Overwrites dw, or adds to it when `accumulate`.
void conv_backward_weights(Context& context, const Window& window, ConstFloatView x,
                           ConstFloatView dy, FloatView dw, bool accumulate);
/// Bytes of the context's workspace that these take; prepares the context for the shapes.
[[nodiscard]] std::size_t conv_workspace_bytes(Context& context, const Window& window,
                                               const Shape& x, const Shape& w);

}  // namespace cudnn

/// A thread for each output, or a block for each weight. They take no workspace.
namespace plain {

void conv_forward(Context& context, const Window& window, ConstFloatView x, ConstFloatView w,
                  FloatView y);
void conv_backward_data(Context& context, const Window& window, ConstFloatView dy, ConstFloatView w,
                        FloatView dx);
void conv_backward_weights(Context& context, const Window& window, ConstFloatView x,
                           ConstFloatView dy, FloatView dw, bool accumulate);

}  // namespace plain

}  // namespace lockstep::cuda
