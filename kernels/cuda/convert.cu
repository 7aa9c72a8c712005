// A copy with another number of samples: layouts are canonical here.
#include <algorithm>

#include "lockstep/core/cuda/runtime.h"
#include "lockstep/kernels/cuda/elements.h"
#include "lockstep/kernels/cuda/kernels.h"

namespace lockstep::cuda {
namespace {

/// y is x as far as `copied` goes, then zeros.
__global__ void copy_and_fill(std::int64_t copied, std::int64_t count, const float* __restrict__ x,
                              float* __restrict__ y) {
  for (std::int64_t i = first_element(); i < count; i += element_stride()) {
    store4(y + i, count - i, load4(x + i, copied - i));
  }
}

}  // namespace

void convert_layout(Context& context, ConstFloatView x, FloatView y) {
  const std::int64_t count = y.shape.count();
  copy_and_fill<<<blocks_for(count), kThreads, 0, stream_of(context)>>>(
      std::min(x.shape.count(), count), count, x.data, y.data);
  check_launch("convert_layout");
}

}  // namespace lockstep::cuda
