// Inverted dropout: y = x * keep / (1 - rate), keep random with probability 1 - rate.
//
// Whether element e (its canonical index inside the sample) of global sample g is kept depends on
// (seed, layer, epoch, g, e) alone: word e % 4 of random_block({seed, dropout, layer, epoch}, g, e
// / 4), kept when uniform_float(word) >= rate. So masks are equal for every layout, backend and
// number of replicas. What is dropped is set to 0, whatever it was (NaN too), forward and backward;
// a place without a sample is dropped whole. x, y, dx, dy, mask have one shape (N, ...) and one
// layout. On a CPU Layout::n16; on CUDA canonical.
#pragma once

#include <cstdint>

#include "lockstep/core/context.h"
#include "lockstep/core/step_state.h"
#include "lockstep/core/tensor.h"

namespace lockstep {

struct DropoutKey {
  std::uint64_t seed = 0;
  std::uint32_t layer = 0;  ///< number of the layer in the model
};

/// Overwrites y and mask (1 kept, 0 dropped). `state` and `sample_index` (N global sample numbers,
/// -1 for a place without a sample) are device memory; the epoch is read from `state`. 0 <= rate <
/// 1, else UsageError. y may be x.
void dropout_forward(Context& context, float rate, const DropoutKey& key, const StepState* state,
                     const std::int32_t* sample_index, ConstFloatView x, FloatView y,
                     View<std::uint8_t> mask);

/// Overwrites dx with dy * mask / (1 - rate). dx may be dy.
void dropout_backward(Context& context, float rate, View<const std::uint8_t> mask,
                      ConstFloatView dy, FloatView dx);

}  // namespace lockstep
