// The fully connected layer: checks and dispatch.
#include "lockstep/kernels/linear.h"

#include <string_view>

#include "lockstep/config.h"
#include "lockstep/kernels/checks.h"
#include "lockstep/kernels/cpu/kernels.h"
#include "lockstep/kernels/cuda/kernels.h"
#include "lockstep/kernels/window_checks.h"

namespace lockstep {
namespace {

using checks::Named;

struct Sizes {
  std::int64_t groups, d, o;
};

/// Each argument may be its gradient; b is optional.
Sizes check(std::string_view operation, const Context& context, const Named& x, const Named& w,
            const Named& b, const Named& y) {
  checks::activation(operation, context, x.name, x.view);
  checks::activation(operation, context, y.name, y.view);
  if (w.view.shape.rank() != 2) {
    throw ShapeError(message(operation, ": ", w.name, " is ", w.view.shape, "; it must be (O, D)"));
  }
  const std::int64_t n = x.view.shape[0];
  const std::int64_t d = x.view.shape.without_first().count();
  const std::int64_t o = w.view.shape[0];
  checks::parameter(operation, w, {o, d});
  checks::shape(operation, y.name, y.view.shape, {n, o});
  if (b.view.data) checks::parameter(operation, b, {o});
  return {n / kN16, d, o};
}

const cpu::LinearKernels& cpu_kernels(const Context& context) {
  return cpu::kernels(context.cpu_set()).linear;
}

}  // namespace

void linear_forward(Context& context, ConstFloatView x, ConstFloatView w, ConstFloatView b,
                    FloatView y) {
  const Sizes sizes = check("linear_forward", context, {"x", x}, {"w", w}, {"b", b}, {"y", y});
  if constexpr (kHasCuda) {
    if (!context.on_cpu()) return cuda::linear_forward(context, x, w, b, y);
  }
  cpu_kernels(context).forward(sizes.groups, sizes.d, sizes.o, x.data, w.data, b.data, y.data);
}

void linear_backward_data(Context& context, ConstFloatView dy, ConstFloatView w, FloatView dx) {
  const Sizes sizes = check("linear_backward_data", context, {"dx", dx}, {"w", w}, {}, {"dy", dy});
  if constexpr (kHasCuda) {
    if (!context.on_cpu()) return cuda::linear_backward_data(context, dy, w, dx);
  }
  cpu_kernels(context).backward_data(sizes.groups, sizes.d, sizes.o, dy.data, w.data, dx.data);
}

void linear_backward_parameters(Context& context, ConstFloatView x, ConstFloatView dy, FloatView dw,
                                FloatView db, bool accumulate) {
  const Sizes sizes =
      check("linear_backward_parameters", context, {"x", x}, {"dw", dw}, {"db", db}, {"dy", dy});
  if constexpr (kHasCuda) {
    if (!context.on_cpu()) {
      return cuda::linear_backward_parameters(context, x, dy, dw, db, accumulate);
    }
  }
  cpu_kernels(context).backward_parameters(sizes.groups, sizes.d, sizes.o, x.data, dy.data, dw.data,
                                           db.data, accumulate);
}

}  // namespace lockstep
