#include "lockstep/core/cuda/runtime.h"
#include "lockstep/kernels/cuda/launch.h"
#include "lockstep/kernels/cuda/pad.h"

namespace lockstep::cuda {
namespace {

__global__ void pad_kernel(Frame frame, const float* __restrict__ x, float* __restrict__ padded) {
  const PlaneThread thread = plane_thread();
  if (thread.plane >= frame.planes) return;
  const float* from = x + thread.plane * frame.h * frame.w;
  const int places = frame.padded_h * frame.padded_w;
  float* to = padded + thread.plane * places;
  for (int i = thread.first; i < places; i += thread.step) {
    const int row = i / frame.padded_w - frame.top;
    const int column = i % frame.padded_w - frame.left;
    const bool inside = row >= 0 && row < frame.h && column >= 0 && column < frame.w;
    to[i] = inside ? from[row * frame.w + column] : 0.0F;
  }
}

__global__ void crop_kernel(Frame frame, const float* __restrict__ padded, float* __restrict__ x) {
  const PlaneThread thread = plane_thread();
  if (thread.plane >= frame.planes) return;
  const float* from = padded + thread.plane * frame.padded_h * frame.padded_w;
  const int places = frame.h * frame.w;
  float* to = x + thread.plane * places;
  for (int i = thread.first; i < places; i += thread.step) {
    to[i] = from[(i / frame.w + frame.top) * frame.padded_w + i % frame.w + frame.left];
  }
}

}  // namespace

void pad_images(Context& context, const Frame& frame, const float* x, float* padded) {
  const Launch launch = over_planes(frame.planes, frame.padded_h * frame.padded_w);
  pad_kernel<<<launch.grid, launch.block, 0, stream_of(context)>>>(frame, x, padded);
  check_launch("pad_images");
}

void crop_images(Context& context, const Frame& frame, const float* padded, float* x) {
  const Launch launch = over_planes(frame.planes, frame.h * frame.w);
  crop_kernel<<<launch.grid, launch.block, 0, stream_of(context)>>>(frame, padded, x);
  check_launch("crop_images");
}

}  // namespace lockstep::cuda
