// Gathers samples of a data set: a block of threads copies one sample, or a part of a large one.
#include <algorithm>

#include "lockstep/core/cuda/runtime.h"
#include "lockstep/kernels/cuda/elements.h"
#include "lockstep/kernels/cuda/kernels.h"
#include "lockstep/kernels/step_math.h"

namespace lockstep::cuda {
namespace {

struct Places {
  std::int64_t first, end;
};

__device__ float4 values4(const DeviceSamples& samples, std::int64_t row, std::int64_t feature) {
  const std::int64_t left = samples.features - feature;
  const std::int64_t at = row * samples.features + feature;
  if (samples.bytes == nullptr) return load4(samples.floats + at, left);
  const uchar4 bytes = load4(samples.bytes + at, left);
  return {static_cast<float>(bytes.x) * samples.scale, static_cast<float>(bytes.y) * samples.scale,
          static_cast<float>(bytes.z) * samples.scale, static_cast<float>(bytes.w) * samples.scale};
}

/// The row of bytes or floats that holds a place's values.
__device__ std::int64_t row_of(const DeviceSamples& samples, std::int64_t step, std::int64_t place,
                               std::int64_t sample) {
  if (samples.ring_steps == 0) return sample;
  return step % samples.ring_steps * samples.ring_places + place - samples.ring_first;
}

/// Place blockIdx.x of the block; the parts of a sample along blockIdx.y.
__device__ void gather_place(const DeviceSamples& samples, const EpochTables& tables,
                             const Visits& visits, std::int64_t step, const Places& places,
                             const GatheredBlock& out) {
  const std::int64_t n = blockIdx.x;
  const std::int64_t place = places.first + n;
  std::int32_t sample = -1;
  if (place < places.end && place < visits.count) {
    const std::int64_t visit = visits.first + place;
    sample = tables.permutation != nullptr ? tables.permutation[visit]
                                           : static_cast<std::int32_t>(visit);
  }
  const bool empty = sample < 0;
  const std::int64_t row = row_of(samples, step, place, sample);
  float* x = out.x.data + n * samples.features;
  const std::int64_t stride = 4 * std::int64_t{gridDim.y} * blockDim.x;
  for (std::int64_t feature = 4 * (std::int64_t{blockIdx.y} * blockDim.x + threadIdx.x);
       feature < samples.features; feature += stride) {
    store4(x + feature, samples.features - feature,
           empty ? float4{} : values4(samples, row, feature));
  }
  if (blockIdx.y > 0) return;
  if (threadIdx.x == 0) {
    out.sample_index[n] = sample;
    if (samples.classes != nullptr) out.classes[n] = empty ? 0 : samples.classes[sample];
  }
  if (samples.soft == nullptr) return;
  const std::int64_t classes = samples.soft_classes;
  for (std::int64_t c = threadIdx.x; c < classes; c += blockDim.x) {
    out.soft[n * classes + c] = empty ? 0.0F : samples.soft[sample * classes + c];
  }
}

__global__ void gather_kernel(DeviceSamples samples, EpochTables tables, const StepState* state,
                              Places places, GatheredBlock out) {
  const Visits visits{state->first_sample, state->real_samples};
  gather_place(samples, tables, visits, state->step_in_epoch, places, out);
}

/// Every block works out the batch for itself; of the state they read only what none writes.
__global__ void open_and_gather_kernel(DeviceSamples samples, EpochTables tables,
                                       const volatile std::uint32_t* stop_request, StepState* state,
                                       Places places, GatheredBlock out) {
  const std::int64_t step = state->step_in_epoch;
  if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0) {
    set_batch(tables, *state);
    state->stop = stop_request == nullptr ? 0 : *stop_request;
  }
  gather_place(samples, tables, visits_of(tables, step), step, places, out);
}

/// One column of blocks for each place.
dim3 grid_for(const DeviceSamples& samples, std::int64_t places) {
  constexpr std::int64_t kMostParts = 64;
  const std::int64_t parts = (samples.features + 4 * kThreads - 1) / (4 * kThreads);
  return {static_cast<unsigned>(places),
          static_cast<unsigned>(std::clamp<std::int64_t>(parts, 1, kMostParts)), 1};
}

}  // namespace

void gather(Context& context, const DeviceSamples& samples, const EpochTables& tables,
            const StepState* state, std::int64_t first_place, std::int64_t end_place,
            const GatheredBlock& out) {
  gather_kernel<<<grid_for(samples, out.x.shape[0]), kThreads, 0, stream_of(context)>>>(
      samples, tables, state, {first_place, end_place}, out);
  check_launch("gather");
}

void open_and_gather(Context& context, const DeviceSamples& samples, const EpochTables& tables,
                     const std::uint32_t* stop_request, StepState* state, std::int64_t first_place,
                     std::int64_t end_place, const GatheredBlock& out) {
  open_and_gather_kernel<<<grid_for(samples, out.x.shape[0]), kThreads, 0, stream_of(context)>>>(
      samples, tables, stop_request, state, {first_place, end_place}, out);
  check_launch("open_and_gather");
}

}  // namespace lockstep::cuda
