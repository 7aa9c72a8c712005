// The CUDA twins of the operations. They have the arguments of the operations themselves and trust
// them: kernels/*.cpp has checked. All memory is the device's; everything goes to the context's
// stream. No CUDA type: builds without the toolkit compile the callers too. Internal.
#pragma once

#include "lockstep/kernels/conv.h"
#include "lockstep/kernels/convert.h"
#include "lockstep/kernels/dropout.h"
#include "lockstep/kernels/fused.h"
#include "lockstep/kernels/gather.h"
#include "lockstep/kernels/linear.h"
#include "lockstep/kernels/optimize.h"
#include "lockstep/kernels/pool.h"
#include "lockstep/kernels/reduce.h"
#include "lockstep/kernels/relu.h"
#include "lockstep/kernels/softmax_cross_entropy.h"

namespace lockstep::cuda {

void conv2d_forward(Context& context, const Window& window, ConstFloatView x, ConstFloatView w,
                    ConstFloatView b, FloatView y);
void conv2d_backward_data(Context& context, const Window& window, ConstFloatView dy,
                          ConstFloatView w, FloatView dx);
void conv2d_backward_parameters(Context& context, const Window& window, ConstFloatView x,
                                ConstFloatView dy, FloatView dw, FloatView db, bool accumulate);
[[nodiscard]] std::size_t conv2d_workspace_bytes(Context& context, const Window& window,
                                                 const Shape& x, const Shape& w);

void maxpool2d_forward(Context& context, const Window& window, ConstFloatView x, FloatView y,
                       View<std::uint8_t> argmax);
void maxpool2d_backward(Context& context, const Window& window, ConstFloatView dy,
                        View<const std::uint8_t> argmax, FloatView dx);

void linear_forward(Context& context, ConstFloatView x, ConstFloatView w, ConstFloatView b,
                    FloatView y);
void linear_backward_data(Context& context, ConstFloatView dy, ConstFloatView w, FloatView dx);
void linear_backward_parameters(Context& context, ConstFloatView x, ConstFloatView dy, FloatView dw,
                                FloatView db, bool accumulate);

void conv_pool_forward(Context& context, const Window& conv, const Window& pool, bool relu,
                       ConstFloatView x, ConstFloatView w, ConstFloatView b, FloatView y,
                       View<std::uint8_t> argmax);
void conv_pool_backward(Context& context, const Window& conv, const Window& pool, bool relu,
                        ConstFloatView x, ConstFloatView w, ConstFloatView y,
                        View<const std::uint8_t> argmax, ConstFloatView dy, FloatView dw,
                        FloatView db, bool accumulate, FloatView dx, int shards,
                        std::int64_t grads_stride);
void linear_loss(Context& context, ConstFloatView x, ConstFloatView w, ConstFloatView b,
                 const Targets& targets, const StepState* state, FloatView logits, float* loss,
                 float* correct, FloatView dlogits);
void linear_backward(Context& context, ConstFloatView x, ConstFloatView w, ConstFloatView dy,
                     FloatView dw, FloatView db, bool accumulate, FloatView dx, int shards,
                     std::int64_t grads_stride);

void relu_forward(Context& context, ConstFloatView x, FloatView y);
void relu_backward(Context& context, ConstFloatView y, ConstFloatView dy, FloatView dx);

void dropout_forward(Context& context, float rate, const DropoutKey& key, const StepState* state,
                     const std::int32_t* sample_index, ConstFloatView x, FloatView y,
                     View<std::uint8_t> mask);
void dropout_backward(Context& context, float rate, View<const std::uint8_t> mask,
                      ConstFloatView dy, FloatView dx);

void softmax_cross_entropy(Context& context, ConstFloatView logits, const Targets& targets,
                           const StepState* state, float* loss, float* correct, FloatView dlogits);
void sum_losses(Context& context, const StepState* state, const float* loss, const float* correct,
                std::int64_t n, StepTail* tail, bool accumulate, int shards,
                std::int64_t tail_stride);
void sum_chunk(Context& context, const float* loss, const float* correct, std::int64_t n,
               ChunkSums* sums, bool accumulate);

void open_step(Context& context, const EpochTables& tables, const std::uint32_t* stop_request,
               StepState* state);
void open_chunk(Context& context, const EpochTables& tables, std::int64_t chunk, StepState* state);
void gather(Context& context, const DeviceSamples& samples, const EpochTables& tables,
            const StepState* state, std::int64_t first_place, std::int64_t end_place,
            const GatheredBlock& out);
void open_and_gather(Context& context, const DeviceSamples& samples, const EpochTables& tables,
                     const std::uint32_t* stop_request, StepState* state, std::int64_t first_place,
                     std::int64_t end_place, const GatheredBlock& out);

void adam_update(Context& context, const AdamParameters& adam, const StepState* state,
                 const float* grads, const float* decay_mask, float* params, float* first_moment,
                 float* second_moment, std::int64_t count);
void sgd_update(Context& context, const SgdParameters& sgd, const StepState* state,
                const float* grads, float* params, float* velocity, std::int64_t count);
void add_l2_gradient(Context& context, const float* l2_factor, const float* params, float* grads,
                     std::int64_t count);
void measure_gradient(Context& context, const float* grads, std::int64_t count, float max_norm,
                      double* scratch, StepState* state, const std::uint32_t* abandoned);
void close_step(Context& context, const StepTail* tail, const double* l2_term, StepState* state,
                EpochSums* sums);

void l2_term(Context& context, const float* factor, const float* x, std::int64_t count,
             double* scratch, double* result);
void add_into(Context& context, float* dst, const float* src, std::int64_t count);
void sum_tree(Context& context, const float* parts, int count, std::int64_t stride,
              std::int64_t floats, float* sum);
void copy_into(Context& context, float* dst, const float* src, std::int64_t count);
void fill_zero(Context& context, float* dst, std::int64_t count);
void hash_floats(Context& context, const float* x, std::int64_t count, std::uint64_t* scratch,
                 std::uint64_t* result);

void convert_layout(Context& context, ConstFloatView x, FloatView y);

}  // namespace lockstep::cuda
