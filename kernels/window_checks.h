// Internal. What convolution, pooling and the fully connected layer check, beside checks.h.
#pragma once

#include <string_view>

#include "lockstep/core/tensor.h"
#include "lockstep/kernels/cpu/kernels.h"
#include "lockstep/kernels/window.h"

namespace lockstep::checks {

/// An argument by the name that its declaration gives it.
struct Named {
  std::string_view name;
  ConstFloatView view;
};

/// Throws ShapeError unless `shape` is `expected`.
void shape(std::string_view operation, std::string_view name, const Shape& shape,
           const Shape& expected);

/// Throws ShapeError unless the parameter is canonical and has the shape `expected`.
void parameter(std::string_view operation, const Named& argument, const Shape& expected);

/// The sizes of a window that slides over x (N,C,H,W) and makes `k` channels. Throws ShapeError for
/// a window that is none (kernel or stride below 1, negative padding), for x of another rank, and
/// where the kernel does not fit.
cpu::WindowGeometry window_geometry(std::string_view operation, const Window& window,
                                    const Shape& x, std::int64_t k);

}  // namespace lockstep::checks
