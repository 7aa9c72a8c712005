// Softmax cross-entropy and the sums of its results: checks and dispatch.
#include "lockstep/kernels/softmax_cross_entropy.h"

#include "lockstep/config.h"
#include "lockstep/kernels/checks.h"
#include "lockstep/kernels/cpu/plain.h"
#include "lockstep/kernels/cuda/kernels.h"

namespace lockstep {

void softmax_cross_entropy(Context& context, ConstFloatView logits, const Targets& targets,
                           const StepState* state, float* loss, float* correct, FloatView dlogits) {
  checks::activation("softmax_cross_entropy", context, "logits", logits);
  if (logits.shape.rank() != 2 || logits.shape[1] < 1) {
    throw ShapeError(message("softmax_cross_entropy: logits is ", logits.shape,
                             "; it must be (N, C) with at least one class"));
  }
  if (dlogits.data != nullptr) {
    checks::same_shape("softmax_cross_entropy", "logits", logits, "dlogits", dlogits);
    if (state == nullptr)
      throw UsageError("softmax_cross_entropy: the gradient needs the state of the step");
  }
  if (targets.sample_index == nullptr ||
      (targets.classes != nullptr) == (targets.soft != nullptr)) {
    throw UsageError(
        "softmax_cross_entropy: targets must have sample numbers, and either class indices or soft "
        "targets");
  }
  if constexpr (kHasCuda) {
    if (!context.on_cpu()) {
      return cuda::softmax_cross_entropy(context, logits, targets, state, loss, correct, dlogits);
    }
  }
  cpu::softmax_cross_entropy(logits.shape[0], logits.shape[1], logits.data, targets, state, loss,
                             correct, dlogits.data);
}

void sum_losses(Context& context, const StepState* state, const float* loss, const float* correct,
                std::int64_t n, StepTail* tail, bool accumulate, int shards,
                std::int64_t tail_stride) {
  checks::count("sum_losses", n);
  if (shards < 1 || n % shards != 0) {
    throw ShapeError(message("sum_losses: ", n, " samples are not ", shards, " equal slices"));
  }
  if constexpr (kHasCuda) {
    if (!context.on_cpu()) {
      return cuda::sum_losses(context, state, loss, correct, n, tail, accumulate, shards,
                              tail_stride);
    }
  }
  const std::int64_t slice = n / shards;
  for (int shard = 0; shard < shards; ++shard) {
    auto* its_tail =
        reinterpret_cast<StepTail*>(reinterpret_cast<float*>(tail) + shard * tail_stride);
    cpu::sum_losses(*state, loss + shard * slice, correct + shard * slice, slice, its_tail,
                    accumulate);
  }
}

void sum_chunk(Context& context, const float* loss, const float* correct, std::int64_t n,
               ChunkSums* sums, bool accumulate) {
  checks::count("sum_chunk", n);
  if constexpr (kHasCuda) {
    if (!context.on_cpu()) return cuda::sum_chunk(context, loss, correct, n, sums, accumulate);
  }
  cpu::sum_chunk(loss, correct, n, sums, accumulate);
}

}  // namespace lockstep
