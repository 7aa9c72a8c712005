// Convolution: checks and dispatch.
#include "lockstep/kernels/conv.h"

#include <string_view>

#include "lockstep/config.h"
#include "lockstep/kernels/checks.h"
#include "lockstep/kernels/cpu/kernels.h"
#include "lockstep/kernels/cuda/kernels.h"
#include "lockstep/kernels/window_checks.h"

namespace lockstep {
namespace {

using checks::Named;

const cpu::ConvKernels& cpu_kernels(const Context& context) {
  return cpu::kernels(context.cpu_set()).conv;
}

cpu::WindowGeometry geometry(std::string_view operation, const Window& window, const Shape& x,
                             std::string_view w_name, const Shape& w) {
  if (w.rank() != 4)
    throw ShapeError(message(operation, ": ", w_name, " is ", w, "; it must be (K, C, R, S)"));
  const cpu::WindowGeometry g = checks::window_geometry(operation, window, x, w[0]);
  checks::shape(operation, w_name, w, {g.k, g.c, g.kernel_h, g.kernel_w});
  return g;
}

std::size_t workspace_bytes(Context& context, const cpu::WindowGeometry& g, const Window& window,
                            const Shape& x, const Shape& w) {
  if constexpr (kHasCuda) {
    if (!context.on_cpu()) return cuda::conv2d_workspace_bytes(context, window, x, w);
  }
  return cpu_kernels(context).workspace_bytes(g);
}

/// Each argument may be its gradient; b is optional.
cpu::WindowGeometry check(std::string_view operation, Context& context, const Window& window,
                          const Named& x, const Named& w, const Named& b, const Named& y) {
  checks::activation(operation, context, x.name, x.view);
  checks::activation(operation, context, y.name, y.view);
  const cpu::WindowGeometry g = geometry(operation, window, x.view.shape, w.name, w.view.shape);
  checks::parameter(operation, w, w.view.shape);
  checks::shape(operation, y.name, y.view.shape, {x.view.shape[0], g.k, g.p, g.q});
  if (b.view.data) checks::parameter(operation, b, {g.k});
  const std::size_t needed = workspace_bytes(context, g, window, x.view.shape, w.view.shape);
  if (context.workspace_bytes() < needed) {
    throw UsageError(message(operation, ": the workspace has ", context.workspace_bytes(),
                             " bytes, but ", needed,
                             " are needed; reserve conv2d_workspace_bytes"));
  }
  return g;
}

}  // namespace

void conv2d_forward(Context& context, const Window& window, ConstFloatView x, ConstFloatView w,
                    ConstFloatView b, FloatView y) {
  const cpu::WindowGeometry g =
      check("conv2d_forward", context, window, {"x", x}, {"w", w}, {"b", b}, {"y", y});
  if constexpr (kHasCuda) {
    if (!context.on_cpu()) return cuda::conv2d_forward(context, window, x, w, b, y);
  }
  cpu_kernels(context).forward(g, x.data, w.data, b.data, y.data, context.workspace());
}

void conv2d_backward_data(Context& context, const Window& window, ConstFloatView dy,
                          ConstFloatView w, FloatView dx) {
  const cpu::WindowGeometry g =
      check("conv2d_backward_data", context, window, {"dx", dx}, {"w", w}, {}, {"dy", dy});
  if constexpr (kHasCuda) {
    if (!context.on_cpu()) return cuda::conv2d_backward_data(context, window, dy, w, dx);
  }
  cpu_kernels(context).backward_data(g, dy.data, w.data, dx.data, context.workspace());
}

void conv2d_backward_parameters(Context& context, const Window& window, ConstFloatView x,
                                ConstFloatView dy, FloatView dw, FloatView db, bool accumulate) {
  const cpu::WindowGeometry g = check("conv2d_backward_parameters", context, window, {"x", x},
                                      {"dw", dw}, {"db", db}, {"dy", dy});
  if constexpr (kHasCuda) {
    if (!context.on_cpu()) {
      return cuda::conv2d_backward_parameters(context, window, x, dy, dw, db, accumulate);
    }
  }
  cpu_kernels(context).backward_parameters(g, x.data, dy.data, dw.data, db.data, accumulate,
                                           context.workspace());
}

std::size_t conv2d_workspace_bytes(Context& context, const Window& window, const Shape& x,
                                   const Shape& w) {
  const cpu::WindowGeometry g = geometry("conv2d_workspace_bytes", window, x, "w", w);
  return workspace_bytes(context, g, window, x, w);
}

}  // namespace lockstep
