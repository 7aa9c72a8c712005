// ReLU: checks and dispatch.
#include "lockstep/kernels/relu.h"

#include "lockstep/config.h"
#include "lockstep/kernels/checks.h"
#include "lockstep/kernels/cpu/kernels.h"
#include "lockstep/kernels/cuda/kernels.h"

namespace lockstep {

void relu_forward(Context& context, ConstFloatView x, FloatView y) {
  checks::same_shape("relu_forward", "x", x, "y", y);
  if constexpr (kHasCuda) {
    if (!context.on_cpu()) return cuda::relu_forward(context, x, y);
  }
  cpu::kernels(context.cpu_set()).relu.forward(x.shape.count(), x.data, y.data);
}

void relu_backward(Context& context, ConstFloatView y, ConstFloatView dy, FloatView dx) {
  checks::same_shape("relu_backward", "y", y, "dy", dy);
  checks::same_shape("relu_backward", "y", y, "dx", dx);
  if constexpr (kHasCuda) {
    if (!context.on_cpu()) return cuda::relu_backward(context, y, dy, dx);
  }
  cpu::kernels(context.cpu_set()).relu.backward(y.shape.count(), y.data, dy.data, dx.data);
}

}  // namespace lockstep
