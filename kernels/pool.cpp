// Max-pooling: checks and dispatch.
#include "lockstep/kernels/pool.h"

#include <string_view>

#include "lockstep/config.h"
#include "lockstep/kernels/checks.h"
#include "lockstep/kernels/cpu/kernels.h"
#include "lockstep/kernels/cuda/kernels.h"
#include "lockstep/kernels/window_checks.h"

namespace lockstep {
namespace {

/// Places that one byte can number.
constexpr std::int64_t kMaxPlaces = 256;

/// Whether every window along an axis covers a place of the input; the first and the last are the
/// ones at risk.
bool all_cover(std::int64_t extent, std::int64_t outputs, std::int64_t kernel, std::int64_t stride,
               std::int64_t pad) {
  return pad < kernel && (outputs - 1) * stride - pad < extent;
}

cpu::WindowGeometry check(std::string_view operation, const Context& context, const Window& window,
                          std::string_view x_name, ConstFloatView x, std::string_view y_name,
                          ConstFloatView y, View<const std::uint8_t> argmax) {
  checks::activation(operation, context, x_name, x);
  checks::activation(operation, context, y_name, y);
  const cpu::WindowGeometry g =
      checks::window_geometry(operation, window, x.shape, x.shape.rank() == 4 ? x.shape[1] : 0);
  if (!all_cover(g.h, g.p, g.kernel_h, g.stride_h, g.pad_top) ||
      !all_cover(g.w, g.q, g.kernel_w, g.stride_w, g.pad_left)) {
    throw ShapeError(message(operation, ": each window of ", g.kernel_h, " x ", g.kernel_w,
                             " must cover a place of ", x_name, " ", x.shape,
                             "; take less padding"));
  }
  if (g.kernel_h * g.kernel_w > kMaxPlaces) {
    throw ShapeError(
        message(operation, ": a window of ", g.kernel_h, " x ", g.kernel_w, " has more than ",
                kMaxPlaces, " places, and argmax numbers them in one byte; take a smaller kernel"));
  }
  const Shape outputs{x.shape[0], g.k, g.p, g.q};
  checks::shape(operation, y_name, y.shape, outputs);
  if (argmax.data) {
    checks::activation(operation, context, "argmax", argmax);
    checks::shape(operation, "argmax", argmax.shape, outputs);
  }
  return g;
}

}  // namespace

void maxpool2d_forward(Context& context, const Window& window, ConstFloatView x, FloatView y,
                       View<std::uint8_t> argmax) {
  const cpu::WindowGeometry g = check("maxpool2d_forward", context, window, "x", x, "y", y, argmax);
  if constexpr (kHasCuda) {
    if (!context.on_cpu()) return cuda::maxpool2d_forward(context, window, x, y, argmax);
  }
  cpu::kernels(context.cpu_set()).pool.forward(g, x.data, y.data, argmax.data);
}

void maxpool2d_backward(Context& context, const Window& window, ConstFloatView dy,
                        View<const std::uint8_t> argmax, FloatView dx) {
  if (!argmax.data)
    throw UsageError("maxpool2d_backward: argmax is null; pass the one that forward wrote");
  const cpu::WindowGeometry g =
      check("maxpool2d_backward", context, window, "dx", dx, "dy", dy, argmax);
  if constexpr (kHasCuda) {
    if (!context.on_cpu()) return cuda::maxpool2d_backward(context, window, dy, argmax, dx);
  }
  cpu::kernels(context.cpu_set()).pool.backward(g, dy.data, argmax.data, dx.data);
}

}  // namespace lockstep
