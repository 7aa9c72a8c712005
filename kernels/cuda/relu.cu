// ReLU over a run of floats.
#include "lockstep/core/cuda/runtime.h"
#include "lockstep/kernels/cuda/elements.h"
#include "lockstep/kernels/cuda/kernels.h"

namespace lockstep::cuda {
namespace {

// Comparing with <= lets NaN through and turns -0 into 0. No pointer is __restrict__: the output
// may be an input.

__device__ float open_where(float y, float value) {
  return y <= 0 ? 0.0F : value;
}

__device__ float4 open_where(float4 y, float4 value) {
  return {open_where(y.x, value.x), open_where(y.y, value.y), open_where(y.z, value.z),
          open_where(y.w, value.w)};
}

/// out = `value` where `y` is above 0 or NaN, else 0. Forward both are x.
__global__ void relu_kernel(std::int64_t count, const float* y, const float* value, float* out) {
  for (std::int64_t i = first_element(); i < count; i += element_stride()) {
    const std::int64_t left = count - i;
    store4(out + i, left, open_where(load4(y + i, left), load4(value + i, left)));
  }
}

void run(Context& context, const char* name, std::int64_t count, const float* y, const float* value,
         float* out) {
  relu_kernel<<<blocks_for(count), kThreads, 0, stream_of(context)>>>(count, y, value, out);
  check_launch(name);
}

}  // namespace

void relu_forward(Context& context, ConstFloatView x, FloatView y) {
  run(context, "relu_forward", x.shape.count(), x.data, x.data, y.data);
}

void relu_backward(Context& context, ConstFloatView y, ConstFloatView dy, FloatView dx) {
  run(context, "relu_backward", y.shape.count(), y.data, dy.data, dx.data);
}

}  // namespace lockstep::cuda
