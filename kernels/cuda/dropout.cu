// Inverted dropout: a thread draws one block of random words for four elements of a sample.
#include "lockstep/core/cuda/runtime.h"
#include "lockstep/core/random.h"
#include "lockstep/kernels/cuda/elements.h"
#include "lockstep/kernels/cuda/kernels.h"
#include "lockstep/kernels/dropout_settings.h"

namespace lockstep::cuda {
namespace {

struct Keep {
  std::uint32_t threshold;
  float scale;
};

__device__ float keep_or_drop(bool keep, float value, float scale) {
  return keep ? value * scale : 0.0F;
}

__device__ float4 keep_or_drop(uchar4 keep, float4 value, float scale) {
  return {keep_or_drop(keep.x != 0, value.x, scale), keep_or_drop(keep.y != 0, value.y, scale),
          keep_or_drop(keep.z != 0, value.z, scale), keep_or_drop(keep.w != 0, value.w, scale)};
}

/// `fours` counts the groups of four elements of a sample. y may be x: a thread reads its elements
/// before it writes them.
__global__ void dropout_forward_kernel(std::int64_t samples, std::int64_t features,
                                       std::int64_t fours, Keep keep, DropoutKey key,
                                       const StepState* state, const std::int32_t* sample_index,
                                       const float* x, float* y, std::uint8_t* mask) {
  const RandomKey stream{.seed = key.seed,
                         .purpose = RandomPurpose::dropout,
                         .item = key.layer,
                         .epoch = state->epoch};
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < samples * fours;
       i += stride) {
    const std::int64_t n = i / fours;
    const std::int64_t four = i % fours;
    const std::int32_t sample = sample_index[n];
    const PhiloxBlock words =
        random_block(stream, static_cast<std::uint32_t>(sample), static_cast<std::uint32_t>(four));
    const auto kept = [&](std::size_t word) -> unsigned char {
      return sample >= 0 && words[word] >> 8 >= keep.threshold ? 1 : 0;
    };
    const uchar4 kept4{kept(0), kept(1), kept(2), kept(3)};
    const std::int64_t at = n * features + 4 * four;
    const std::int64_t left = features - 4 * four;
    store4(y + at, left, keep_or_drop(kept4, load4(x + at, left), keep.scale));
    store4(mask + at, left, kept4);
  }
}

__global__ void dropout_backward_kernel(std::int64_t count, float scale, const std::uint8_t* mask,
                                        const float* dy, float* dx) {
  for (std::int64_t i = first_element(); i < count; i += element_stride()) {
    const std::int64_t left = count - i;
    store4(dx + i, left, keep_or_drop(load4(mask + i, left), load4(dy + i, left), scale));
  }
}

}  // namespace

void dropout_forward(Context& context, float rate, const DropoutKey& key, const StepState* state,
                     const std::int32_t* sample_index, ConstFloatView x, FloatView y,
                     View<std::uint8_t> mask) {
  const std::int64_t samples = x.shape[0];
  const std::int64_t features = x.shape.without_first().count();
  const std::int64_t fours = (features + 3) / 4;
  dropout_forward_kernel<<<blocks_for(4 * samples * fours), kThreads, 0, stream_of(context)>>>(
      samples, features, fours, {dropout_threshold(rate), dropout_scale(rate)}, key, state,
      sample_index, x.data, y.data, mask.data);
  check_launch("dropout_forward");
}

void dropout_backward(Context& context, float rate, View<const std::uint8_t> mask,
                      ConstFloatView dy, FloatView dx) {
  const std::int64_t count = dy.shape.count();
  dropout_backward_kernel<<<blocks_for(count), kThreads, 0, stream_of(context)>>>(
      count, dropout_scale(rate), mask.data, dy.data, dx.data);
  check_launch("dropout_backward");
}

}  // namespace lockstep::cuda
