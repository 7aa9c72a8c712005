// Softmax cross-entropy, a warp for each sample, in double as on a CPU; and the sums of its
// results.
#include "lockstep/core/cuda/runtime.h"
#include "lockstep/kernels/cuda/extents.h"
#include "lockstep/kernels/cuda/kernels.h"
#include "lockstep/kernels/cuda/launch.h"
#include "lockstep/kernels/cuda/softmax.h"

namespace lockstep::cuda {
namespace {

constexpr int kSamplesPerBlock = 4;

__global__ void softmax_kernel(std::int64_t samples, int classes, const float* logits,
                               Targets targets, const StepState* __restrict__ state,
                               float* __restrict__ loss, float* __restrict__ correct,
                               float* dlogits) {
  const std::int64_t n =
      static_cast<std::int64_t>(blockIdx.x) * kSamplesPerBlock + threadIdx.x / kWarp;
  if (n >= samples) return;
  softmax_sample(n, classes, logits + n * classes, targets, state, loss, correct,
                 dlogits != nullptr ? dlogits + n * classes : nullptr);
}

constexpr int kSumThreads = 256;

/// Sums over (n) by one block, valid in thread 0.
struct Sums {
  double loss, correct;
};

__device__ Sums sum_samples(std::int64_t n, const float* loss, const float* correct) {
  __shared__ double loss_partial[kWarp];
  __shared__ double correct_partial[kWarp];
  Sums sums{0, 0};
  for (std::int64_t i = threadIdx.x; i < n; i += kSumThreads) {
    sums.loss += loss[i];
    sums.correct += correct[i];
  }
  sums.loss = block_sum(sums.loss, loss_partial);
  sums.correct = block_sum(sums.correct, correct_partial);
  return sums;
}

__global__ void __launch_bounds__(kSumThreads)
    sum_losses_kernel(const StepState* __restrict__ state, const float* __restrict__ loss,
                      const float* __restrict__ correct, std::int64_t slice,
                      float* __restrict__ tails, std::int64_t tail_stride, bool accumulate) {
  const std::int64_t shard = blockIdx.x;
  const Sums sums = sum_samples(slice, loss + shard * slice, correct + shard * slice);
  if (threadIdx.x != 0) return;
  auto* tail = reinterpret_cast<StepTail*>(tails + shard * tail_stride);
  tail->loss = static_cast<float>((accumulate ? tail->loss : 0.0) + sums.loss);
  tail->correct = static_cast<float>((accumulate ? tail->correct : 0.0) + sums.correct);
  if (!accumulate) tail->stop = static_cast<float>(state->stop);
}

__global__ void __launch_bounds__(kSumThreads)
    sum_chunk_kernel(const float* __restrict__ loss, const float* __restrict__ correct,
                     std::int64_t n, ChunkSums* __restrict__ total, bool accumulate) {
  const Sums sums = sum_samples(n, loss, correct);
  if (threadIdx.x != 0) return;
  total->loss = (accumulate ? total->loss : 0.0) + sums.loss;
  total->correct = (accumulate ? total->correct : 0) + static_cast<std::int64_t>(sums.correct);
}

}  // namespace

void softmax_cross_entropy(Context& context, ConstFloatView logits, const Targets& targets,
                           const StepState* state, float* loss, float* correct, FloatView dlogits) {
  const std::int64_t samples = logits.shape[0];
  const std::int64_t blocks = (samples + kSamplesPerBlock - 1) / kSamplesPerBlock;
  softmax_kernel<<<int_extent(blocks), kSamplesPerBlock * kWarp, 0, stream_of(context)>>>(
      samples, int_extent(logits.shape[1]), logits.data, targets, state, loss, correct,
      dlogits.data);
  check_launch("softmax_cross_entropy");
}

void sum_losses(Context& context, const StepState* state, const float* loss, const float* correct,
                std::int64_t n, StepTail* tail, bool accumulate, int shards,
                std::int64_t tail_stride) {
  sum_losses_kernel<<<shards, kSumThreads, 0, stream_of(context)>>>(
      state, loss, correct, n / shards, reinterpret_cast<float*>(tail), tail_stride, accumulate);
  check_launch("sum_losses");
}

void sum_chunk(Context& context, const float* loss, const float* correct, std::int64_t n,
               ChunkSums* sums, bool accumulate) {
  sum_chunk_kernel<<<1, kSumThreads, 0, stream_of(context)>>>(loss, correct, n, sums, accumulate);
  check_launch("sum_chunk");
}

}  // namespace lockstep::cuda
