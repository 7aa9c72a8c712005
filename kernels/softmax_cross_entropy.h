// Softmax cross-entropy of logits, by log-sum-exp, with its gradient and the count of right
// predictions.
//
//   loss[n]      = sum over c of t[n,c] * (log(sum over j of exp(z[n,j])) - z[n,c])
//   dlogits[n,c] = (softmax(z[n])[c] * sum over j of t[n,j] - t[n,c]) * state->inverse_samples
//   correct[n]   = 1 when the first largest logit is the first largest target, else 0
//
// t is one-hot of a class index, or given as soft targets. A place without a sample (sample_index
// -1) has loss 0, correct 0 and a gradient that is set to 0, whatever its logits are. Shapes:
// logits dlogits (N,C); loss correct (N); targets: classes (N) int32 in [0,C) or soft (N,C)
// canonical. Layouts of logits and dlogits: on a CPU Layout::n16; on CUDA canonical. Throws
// ShapeError when shapes do not fit.
#pragma once

#include <cstdint>

#include "lockstep/core/context.h"
#include "lockstep/core/step_state.h"
#include "lockstep/core/tensor.h"

namespace lockstep {

/// What the batch should have given; exactly one of `classes` and `soft` is not null. Device
/// memory.
struct Targets {
  const std::int32_t* sample_index = nullptr;  ///< (N): -1 marks a place without a sample
  const std::int32_t* classes = nullptr;       ///< (N)
  const float* soft = nullptr;                 ///< (N, C)
};

/// Overwrites loss, correct and, unless its data is null, dlogits. dlogits may be logits. `state`
/// is device memory, read only for the gradient.
void softmax_cross_entropy(Context& context, ConstFloatView logits, const Targets& targets,
                           const StepState* state, float* loss, float* correct, FloatView dlogits);

/// tail->loss and tail->correct += the sums over (N), in a fixed order; unless `accumulate` they
/// are overwritten, and tail->stop is set to state->stop. `state` and `tail` are device memory.
/// With `shards` above 1 the N are that many slices of equal size, and slice s has its own tail, s
/// * tail_stride floats behind the first.
void sum_losses(Context& context, const StepState* state, const float* loss, const float* correct,
                std::int64_t n, StepTail* tail, bool accumulate, int shards = 1,
                std::int64_t tail_stride = 0);

/// The same sums in full precision for an evaluation: *sums, device memory, is overwritten, or
/// added to when `accumulate`. In a fixed order; on a CPU that of the samples.
void sum_chunk(Context& context, const float* loss, const float* correct, std::int64_t n,
               ChunkSums* sums, bool accumulate);

}  // namespace lockstep
