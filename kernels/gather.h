// The opening of a step: which samples it has, and their values on the device as floats.
#pragma once

#include <cstdint>

#include "lockstep/core/context.h"
#include "lockstep/core/step_state.h"
#include "lockstep/core/tensor.h"

namespace lockstep {

/// A data set in device memory.
struct DeviceSamples {
  const std::uint8_t* bytes = nullptr;  ///< (count, features) when the samples are uint8, else null
  const float* floats = nullptr;        ///< (count, features) when they are float32, else null
  const std::int32_t* classes = nullptr;  ///< (count) class indices, or null
  const float* soft = nullptr;            ///< (count, classes) soft targets, or null
  std::int64_t count = 0;
  std::int64_t features = 0;      ///< elements of one sample
  std::int64_t soft_classes = 0;  ///< row length of `soft`
  float scale = 1;  ///< a uint8 value v becomes v * scale; floats are taken as they are

  /// Streamed data, on CUDA only: with ring_steps > 0 `bytes` or `floats` is a ring of the batches
  /// of that many steps in place of the whole data set. Place p of step s lies in row
  /// s % ring_steps * ring_places + p - ring_first. Targets are still found by sample number.
  std::int64_t ring_steps = 0;
  std::int64_t ring_places = 0;  ///< places of a global batch that the ring holds
  std::int64_t ring_first = 0;   ///< the first of them
};

/// The plan of an epoch in device memory.
struct EpochTables {
  const std::int32_t* permutation =
      nullptr;               ///< sample numbers in the order they are visited; null: 0, 1, 2, ...
  std::int64_t samples = 0;  ///< length of the permutation
  const float* learning_rates = nullptr;  ///< one per step of the epoch; null: 0
  std::int64_t steps = 0;
  std::int64_t batch_size = 0;  ///< samples of a full global batch
};

/// Where the gathered block goes; device memory. N is the first extent of x.
struct GatheredBlock {
  FloatView x;  ///< (N, ...): on a CPU Layout::n16; on CUDA canonical
  std::int32_t* sample_index =
      nullptr;  ///< (N): number in the data set, -1 for a place without a sample
  std::int32_t* classes = nullptr;  ///< (N): class, 0 without a sample; unused with soft targets
  float* soft = nullptr;  ///< (N, classes): zeros without a sample; unused with class indices
};

/// Fills in state for step `state->step_in_epoch` of the epoch: first_sample, real_samples,
/// inverse_samples, learning_rate, and stop from `*stop_request` (read anew at every call: another
/// thread or a signal handler may set it; null: 0; on CUDA mapped host memory); resets grad_norm
/// and clip_factor. `state` is device memory.
void open_step(Context& context, const EpochTables& tables, const std::uint32_t* stop_request,
               StepState* state);

/// The same for an evaluation, where the caller counts: sets state->step_in_epoch = chunk first,
/// and stop = 0.
void open_chunk(Context& context, const EpochTables& tables, std::int64_t chunk, StepState* state);

/// Gathers places [first_place, first_place + N) of the global batch: place i holds
/// permutation[state->first_sample + i] when i < end_place (the end of the shard) and i <
/// state->real_samples, else it is without a sample: zeros, and -1 as sample_index. Overwrites
/// every output. Throws UsageError for a ring on a CPU.
void gather(Context& context, const DeviceSamples& samples, const EpochTables& tables,
            const StepState* state, std::int64_t first_place, std::int64_t end_place,
            const GatheredBlock& out);

/// open_step, then gather: one launch on CUDA.
void open_and_gather(Context& context, const DeviceSamples& samples, const EpochTables& tables,
                     const std::uint32_t* stop_request, StepState* state, std::int64_t first_place,
                     std::int64_t end_place, const GatheredBlock& out);

}  // namespace lockstep
