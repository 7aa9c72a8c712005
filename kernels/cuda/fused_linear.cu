// The fully connected layer with few outputs: forward with the loss in one kernel, all its
// gradients in another.
#include "lockstep/core/cuda/runtime.h"
#include "lockstep/kernels/cuda/elements.h"
#include "lockstep/kernels/cuda/extents.h"
#include "lockstep/kernels/cuda/handles.h"
#include "lockstep/kernels/cuda/kernels.h"
#include "lockstep/kernels/cuda/last_block.h"
#include "lockstep/kernels/cuda/launch.h"
#include "lockstep/kernels/cuda/softmax.h"
#include "lockstep/kernels/fused_geometry.h"

namespace lockstep::cuda {
namespace {

using fused::kLinearColumns;
using fused::kLinearSamples;

/// A block has one sample: each of its warps computes some of the logits, then the first the loss.
__global__ void __launch_bounds__(kThreads)
    linear_loss_kernel(std::int64_t d, int o, const float* x, const float* w, const float* b,
                       const __grid_constant__ Targets targets, const StepState* state,
                       float* logits, float* loss, float* correct, float* dlogits) {
  __shared__ float z[kFusedLinearOutputs];
  const std::int64_t n = blockIdx.x;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const float* row = x + n * d;
  for (int output = warp; output < o; output += kThreads / kWarp) {
    float sum = 0;
    for (std::int64_t i = 4 * lane; i < d; i += 4 * kWarp) {
      const float4 value = load4(row + i, d - i);
      const float4 weight = load4(w + output * d + i, d - i);
      sum = fmaf(value.x, weight.x, sum);
      sum = fmaf(value.y, weight.y, sum);
      sum = fmaf(value.z, weight.z, sum);
      sum = fmaf(value.w, weight.w, sum);
    }
    sum = warp_sum(sum);
    if (lane == 0) z[output] = sum + (b != nullptr ? b[output] : 0.0F);
  }
  __syncthreads();
  if (warp > 0) return;
  for (int output = lane; output < o; output += kWarp) logits[n * o + output] = z[output];
  softmax_sample(n, o, z, targets, state, loss, correct,
                 dlogits != nullptr ? dlogits + n * o : nullptr);
}

struct LinearBackward {
  std::int64_t d;
  int o;
  int samples;  ///< of a shard
  const float* x;
  const float* w;
  const float* dy;
  float* dw;
  float* db;
  float* dx;
  bool accumulate;
  std::int64_t grads_stride;
  float* partial;     ///< sums of one block after another: [o + 1][kLinearColumns]
  unsigned* tickets;  ///< one for each run of columns of each shard
};

/// Block (a run of columns of x, a part of a shard's samples, the shard); a thread has one column:
/// its row of dw in registers, and its row of w for dx. kOutputs is at least o.
template <int kOutputs>
__global__ void __launch_bounds__(kLinearColumns)
    linear_backward_kernel(const __grid_constant__ LinearBackward task) {
  const int o = task.o;
  const int t = static_cast<int>(threadIdx.x);
  const std::int64_t column = std::int64_t{blockIdx.x} * kLinearColumns + t;
  const bool active = column < task.d;
  const fused::Cut cut = fused::cut_linear_batch(task.samples);
  const int part = static_cast<int>(blockIdx.y);
  const int shard = static_cast<int>(blockIdx.z);
  const int first = shard * task.samples + part * cut.samples;
  const int end = min(first + cut.samples, (shard + 1) * task.samples);

  __shared__ float4 gradients[kLinearSamples][kOutputs / 4];
  float weights[kOutputs] = {};
  float sums[kOutputs] = {};
  float bias = 0;
  const bool with_dx = task.dx != nullptr && active;
  if (with_dx) {
#pragma unroll
    for (int i = 0; i < kOutputs; ++i) {
      const float weight = task.w[min(i, o - 1) * task.d + column];
      weights[i] = i < o ? weight : 0.0F;
    }
  }
  for (int n0 = first; n0 < end; n0 += kLinearSamples) {
    const int here = min(kLinearSamples, end - n0);
    __syncthreads();
    auto* flat = reinterpret_cast<float*>(gradients);
    for (int i = t; i < kLinearSamples * kOutputs; i += kLinearColumns) {
      const int n = i / kOutputs;
      const int output = i % kOutputs;
      flat[i] = n < here && output < o ? task.dy[std::int64_t{n0 + n} * o + output] : 0.0F;
    }
    __syncthreads();
    if (t < o) {
      for (int n = 0; n < here; ++n) bias += flat[n * kOutputs + t];
    }
    if (!active) continue;
#pragma unroll 4
    for (int n = 0; n < here; ++n) {
      const std::int64_t at = std::int64_t{n0 + n} * task.d + column;
      const float value = task.x[at];
      float dx = 0;
#pragma unroll
      for (int i = 0; i < kOutputs; i += 4) {
        const float4 g = gradients[n][i / 4];
        sums[i] = fmaf(g.x, value, sums[i]);
        sums[i + 1] = fmaf(g.y, value, sums[i + 1]);
        sums[i + 2] = fmaf(g.z, value, sums[i + 2]);
        sums[i + 3] = fmaf(g.w, value, sums[i + 3]);
        dx = fmaf(g.x, weights[i], dx);
        dx = fmaf(g.y, weights[i + 1], dx);
        dx = fmaf(g.z, weights[i + 2], dx);
        dx = fmaf(g.w, weights[i + 3], dx);
      }
      if (with_dx) task.dx[at] = dx;
    }
  }

  // Row i < o of a block's sums is dw[i], row o begins with db.
  const std::int64_t stride = std::int64_t{o + 1} * kLinearColumns;
  const unsigned run = blockIdx.z * gridDim.x + blockIdx.x;
  float* of_run = task.partial + run * cut.parts * stride + t;
#pragma unroll
  for (int i = 0; i < kOutputs; ++i) {
    if (i < o) of_run[part * stride + i * kLinearColumns] = sums[i];
  }
  of_run[part * stride + o * kLinearColumns] = bias;
  if (!is_last_block(task.tickets + run, static_cast<unsigned>(cut.parts))) return;

  // The run's sums in order; the loads of one part are in flight together.
  float* dw = task.dw + shard * task.grads_stride + column;
  float before[kOutputs] = {};
  if (task.accumulate && active) {
#pragma unroll
    for (int i = 0; i < kOutputs; ++i) before[i] = dw[min(i, o - 1) * task.d];
  }
  float totals[kOutputs] = {};
  bias = 0;
#pragma unroll 2
  for (int p = 0; p < cut.parts; ++p) {
    const float* of_part = of_run + p * stride;
#pragma unroll
    for (int i = 0; i < kOutputs; ++i) totals[i] += of_part[min(i, o) * kLinearColumns];
    bias += of_part[o * kLinearColumns];
  }
  if (active) {
#pragma unroll
    for (int i = 0; i < kOutputs; ++i) {
      if (i < o) dw[i * task.d] = before[i] + totals[i];
    }
  }
  if (blockIdx.x == 0 && t < o && task.db != nullptr) {
    float* db = task.db + shard * task.grads_stride + t;
    *db = task.accumulate ? *db + bias : bias;
  }
}

}  // namespace

void linear_loss(Context& context, ConstFloatView x, ConstFloatView w, ConstFloatView b,
                 const Targets& targets, const StepState* state, FloatView logits, float* loss,
                 float* correct, FloatView dlogits) {
  const auto blocks = static_cast<unsigned>(int_extent(x.shape[0]));
  linear_loss_kernel<<<blocks, kThreads, 0, stream_of(context)>>>(
      x.shape.without_first().count(), static_cast<int>(w.shape[0]), x.data, w.data, b.data,
      targets, state, logits.data, loss, correct, dlogits.data);
  check_launch("linear_loss");
}

void linear_backward(Context& context, ConstFloatView x, ConstFloatView w, ConstFloatView dy,
                     FloatView dw, FloatView db, bool accumulate, FloatView dx, int shards,
                     std::int64_t grads_stride) {
  const LinearBackward task{.d = x.shape.without_first().count(),
                            .o = static_cast<int>(w.shape[0]),
                            .samples = int_extent(x.shape[0]) / shards,
                            .x = x.data,
                            .w = w.data,
                            .dy = dy.data,
                            .dw = dw.data,
                            .db = db.data,
                            .dx = dx.data,
                            .accumulate = accumulate,
                            .grads_stride = grads_stride,
                            .partial = reinterpret_cast<float*>(context.workspace()),
                            .tickets = handles_of(context).tickets()};
  const dim3 grid(static_cast<unsigned>(fused::column_blocks(task.d)),
                  static_cast<unsigned>(fused::cut_linear_batch(task.samples).parts),
                  static_cast<unsigned>(shards));
  const auto kernel = task.o <= 8    ? linear_backward_kernel<8>
                      : task.o <= 16 ? linear_backward_kernel<16>
                                     : linear_backward_kernel<32>;
  kernel<<<grid, kLinearColumns, 0, stream_of(context)>>>(task);
  check_launch("linear_backward");
}

}  // namespace lockstep::cuda
