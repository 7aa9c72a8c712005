#include "lockstep/kernels/window_checks.h"

#include <algorithm>

#include "lockstep/core/error.h"

namespace lockstep::checks {

void shape(std::string_view operation, std::string_view name, const Shape& shape,
           const Shape& expected) {
  if (shape != expected) {
    throw ShapeError(message(operation, ": ", name, " is ", shape, "; it must be ", expected));
  }
}

void parameter(std::string_view operation, const Named& argument, const Shape& expected) {
  if (argument.view.layout != Layout::canonical) {
    throw ShapeError(message(operation, ": ", argument.name, " has layout ",
                             name_of(argument.view.layout), "; parameters must be canonical"));
  }
  shape(operation, argument.name, argument.view.shape, expected);
}

cpu::WindowGeometry window_geometry(std::string_view operation, const Window& window,
                                    const Shape& x, std::int64_t k) {
  if (std::min({window.kernel_h, window.kernel_w, window.stride_h, window.stride_w}) < 1) {
    throw ShapeError(message(operation, ": kernel ", window.kernel_h, " x ", window.kernel_w,
                             " and stride ", window.stride_h, " x ", window.stride_w,
                             " must be 1 or more"));
  }
  if (std::min({window.pad_top, window.pad_left, window.pad_bottom, window.pad_right}) < 0) {
    throw ShapeError(message(operation, ": padding (top ", window.pad_top, ", left ",
                             window.pad_left, ", bottom ", window.pad_bottom, ", right ",
                             window.pad_right, ") must be 0 or more"));
  }
  if (x.rank() != 4)
    throw ShapeError(message(operation, ": x is ", x, "; it must be (N, C, H, W)"));
  const std::int64_t p = window.output_h(x[2]);
  const std::int64_t q = window.output_w(x[3]);
  if (p < 1 || q < 1) {
    throw ShapeError(message(operation, ": a kernel of ", window.kernel_h, " x ", window.kernel_w,
                             " does not fit into x ", x,
                             " and its padding; take a smaller kernel or more padding"));
  }
  return {.groups = (x[0] + kN16 - 1) / kN16,
          .c = x[1],
          .h = x[2],
          .w = x[3],
          .k = k,
          .p = p,
          .q = q,
          .kernel_h = window.kernel_h,
          .kernel_w = window.kernel_w,
          .stride_h = window.stride_h,
          .stride_w = window.stride_w,
          .pad_top = window.pad_top,
          .pad_left = window.pad_left};
}

}  // namespace lockstep::checks
