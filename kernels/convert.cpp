// Changes of layout: checks and dispatch.
#include "lockstep/kernels/convert.h"

#include "lockstep/config.h"
#include "lockstep/kernels/checks.h"
#include "lockstep/kernels/cpu/plain.h"
#include "lockstep/kernels/cuda/kernels.h"

namespace lockstep {
namespace {

void check_groups(const char* name, const Shape& shape, Layout layout) {
  if (layout == Layout::n16 && shape[0] % kN16 != 0) {
    throw ShapeError(message("convert_layout: ", name, " is ", shape,
                             "; in layout n16 the first extent must be a ", "multiple of ", kN16));
  }
}

}  // namespace

void convert_layout(Context& context, ConstFloatView x, FloatView y) {
  if (x.shape.rank() == 0 || y.shape.rank() == 0 ||
      x.shape.without_first() != y.shape.without_first()) {
    throw ShapeError(message("convert_layout: x is ", x.shape, " and y is ", y.shape,
                             "; all extents but the first must be equal"));
  }
  check_groups("x", x.shape, x.layout);
  check_groups("y", y.shape, y.layout);
  if constexpr (kHasCuda) {
    if (!context.on_cpu()) {
      checks::layout("convert_layout", context, "x", x);
      checks::layout("convert_layout", context, "y", y);
      return cuda::convert_layout(context, x, y);
    }
  }
  cpu::convert_layout(x, y);
}

}  // namespace lockstep
