// Max-pooling in the canonical layout. Forward, a thread looks through one window; backward, a
// thread collects what the windows over one place of x give it, in the order of the windows.
#include "lockstep/core/cuda/runtime.h"
#include "lockstep/kernels/cuda/extents.h"
#include "lockstep/kernels/cuda/kernels.h"
#include "lockstep/kernels/cuda/launch.h"

namespace lockstep::cuda {
namespace {

/// Windows of 2 x 2 side by side and wholly inside x: their numbers are known to the compiler,
/// which then has no loops and no divisions by a stride.
bool is_2x2(const WindowExtents& e) {
  return e.kernel_h == 2 && e.kernel_w == 2 && e.stride_h == 2 && e.stride_w == 2 &&
         e.pad_top == 0 && e.pad_left == 0 && 2 * e.p <= e.h && 2 * e.q <= e.w;
}

/// `e`, and where `is_2x2` its numbers as constants.
template <bool is_2x2>
__device__ WindowExtents known(WindowExtents e) {
  if (is_2x2) {
    e.kernel_h = e.kernel_w = e.stride_h = e.stride_w = 2;
    e.pad_top = e.pad_left = 0;
  }
  return e;
}

template <bool is_2x2>
__global__ void forward(WindowExtents extents, const float* __restrict__ x, float* __restrict__ y,
                        std::uint8_t* __restrict__ argmax) {
  const WindowExtents e = known<is_2x2>(extents);
  const PlaneThread thread = plane_thread();
  if (thread.plane >= static_cast<std::int64_t>(e.n) * e.c) return;
  const float* image = x + thread.plane * e.h * e.w;
  const int outputs = e.p * e.q;
  for (int output = thread.first; output < outputs; output += thread.step) {
    const int top = output / e.q * e.stride_h - e.pad_top;
    const int left = output % e.q * e.stride_w - e.pad_left;
    float best = 0;
    int winner = -1;
    for (int r = 0; r < e.kernel_h; ++r) {
      for (int s = 0; s < e.kernel_w; ++s) {
        const int row = top + r;
        const int column = left + s;
        if (!is_2x2 && (row < 0 || row >= e.h || column < 0 || column >= e.w)) continue;
        const float value = image[row * e.w + column];
        // A comparison with NaN is false: the first says that value is larger or NaN.
        if (winner < 0 || (!(value <= best) && best == best)) {
          best = value;
          winner = r * e.kernel_w + s;
        }
      }
    }
    const std::int64_t at = thread.plane * outputs + output;
    y[at] = best;
    if (argmax != nullptr) argmax[at] = static_cast<std::uint8_t>(winner);
  }
}

/// The outputs along one axis whose windows cover a place: [first, end).
struct Outputs {
  int first, end;
};

__device__ Outputs outputs_over(int place, int outputs, int kernel, int stride, int pad) {
  const int reach = place + pad;
  const int first = reach < kernel ? 0 : (reach - kernel) / stride + 1;
  const int end = reach / stride + 1;
  return {first, end < outputs ? end : outputs};
}

template <bool is_2x2>
__global__ void backward(WindowExtents extents, const float* __restrict__ dy,
                         const std::uint8_t* __restrict__ argmax, float* __restrict__ dx) {
  const WindowExtents e = known<is_2x2>(extents);
  const PlaneThread thread = plane_thread();
  if (thread.plane >= static_cast<std::int64_t>(e.n) * e.c) return;
  const std::int64_t first_output = thread.plane * e.p * e.q;
  const int places = e.h * e.w;
  for (int place = thread.first; place < places; place += thread.step) {
    const int row = place / e.w;
    const int column = place % e.w;
    const Outputs over_row = outputs_over(row, e.p, e.kernel_h, e.stride_h, e.pad_top);
    const Outputs over_column = outputs_over(column, e.q, e.kernel_w, e.stride_w, e.pad_left);
    float sum = 0;
    for (int p = over_row.first; p < over_row.end; ++p) {
      for (int q = over_column.first; q < over_column.end; ++q) {
        const int number = (row - (p * e.stride_h - e.pad_top)) * e.kernel_w + column -
                           (q * e.stride_w - e.pad_left);
        const std::int64_t at = first_output + p * e.q + q;
        if (argmax[at] == number) sum += dy[at];
      }
    }
    dx[thread.plane * places + place] = sum;
  }
}

}  // namespace

void maxpool2d_forward(Context& context, const Window& window, ConstFloatView x, FloatView y,
                       View<std::uint8_t> argmax) {
  const WindowExtents e = window_extents(window, x.shape, y.shape);
  const Launch launch = over_planes(x.shape[0] * x.shape[1], y.shape[2] * y.shape[3]);
  const auto kernel = is_2x2(e) ? forward<true> : forward<false>;
  kernel<<<launch.grid, launch.block, 0, stream_of(context)>>>(e, x.data, y.data, argmax.data);
  check_launch("maxpool2d_forward");
}

void maxpool2d_backward(Context& context, const Window& window, ConstFloatView dy,
                        View<const std::uint8_t> argmax, FloatView dx) {
  const WindowExtents e = window_extents(window, dx.shape, dy.shape);
  const Launch launch = over_planes(dx.shape[0] * dx.shape[1], dx.shape[2] * dx.shape[3]);
  const auto kernel = is_2x2(e) ? backward<true> : backward<false>;
  kernel<<<launch.grid, launch.block, 0, stream_of(context)>>>(e, dy.data, argmax.data, dx.data);
  check_launch("maxpool2d_backward");
}

}  // namespace lockstep::cuda
