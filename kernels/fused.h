// Neighbouring layers as one operation each: convolution + ReLU + max-pooling, and the fully
// connected layer + loss. They compute what the operations one after another compute (conv.h,
// relu.h, pool.h, linear.h, softmax_cross_entropy.h), up to rounding, without writing what lies
// between.
//
// The fully connected layer with its loss is CUDA only: on a CPU, where it would save nothing, its
// operations throw UsageError.
// Layouts: on a CPU activations in Layout::n16; on CUDA canonical. Parameters always canonical. No
// argument may overlap another, and all throw ShapeError when shapes do not fit.
//
// Gradients of parameters: the batch is `shards` slices of equal size, and slice s writes its own
// at dw + s * grads_stride and db + s * grads_stride, in floats; `accumulate` adds to what is
// there. On a CPU there is one slice. They are deterministic, and the bits of a slice do not depend
// on how many share the call.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lockstep/core/context.h"
#include "lockstep/core/step_state.h"
#include "lockstep/core/tensor.h"
#include "lockstep/kernels/softmax_cross_entropy.h"
#include "lockstep/kernels/window.h"

namespace lockstep {

/// conv_pool takes a kernel of 3 x 3 or 5 x 5 with stride 1 and pooling windows of 2 x 2 or 3 x 3
/// side by side without padding. On CUDA also: no more channels than these, and images of which
/// kFusedChannels planes, with what their gradients need, fit into shared memory.
inline constexpr std::int64_t kFusedConvInputs = 16;
inline constexpr std::int64_t kFusedConvOutputs = 32;
inline constexpr std::int64_t kFusedChannels = 4;
/// Of the 48 KiB that every GPU gives a block; the kernels' own variables take the other 16 bytes.
inline constexpr std::int64_t kFusedSharedBytes = 48 * 1024 - 16;
/// Most outputs of the fully connected layer.
inline constexpr std::int64_t kFusedLinearOutputs = 32;
/// Most inputs of the fully connected layer.
inline constexpr std::int64_t kFusedLinearInputs = 1 << 17;
/// Most slices of a batch.
inline constexpr int kFusedShards = 64;

/// Whether the two conv_pool operations below take this. x (N,C,H,W), w (K,C,R,S).
[[nodiscard]] bool conv_pool_is_fused(const Context& context, const Window& conv,
                                      const Window& pool, const Shape& x, const Shape& w);

/// y = maxpool(relu(conv(x, w) + b)), without relu unless `relu`. Overwrites y (N,K,P,Q) and,
/// unless its data is null, argmax of the same shape, as pool.h says. `b` may have null data. On a
/// CPU an infinity in x may become NaN in the windows that it reaches.
void conv_pool_forward(Context& context, const Window& conv, const Window& pool, bool relu,
                       ConstFloatView x, ConstFloatView w, ConstFloatView b, FloatView y,
                       View<std::uint8_t> argmax);

/// The gradients; y and argmax are forward's. Overwrites dx; its data is null when nobody needs it,
/// as db's may be. A gradient that is not finite may make NaN of more of dx than its own places.
/// One launch.
void conv_pool_backward(Context& context, const Window& conv, const Window& pool, bool relu,
                        ConstFloatView x, ConstFloatView w, ConstFloatView y,
                        View<const std::uint8_t> argmax, ConstFloatView dy, FloatView dw,
                        FloatView db, bool accumulate, FloatView dx, int shards,
                        std::int64_t grads_stride);

/// Bytes of workspace that conv_pool_backward needs, and on a CPU conv_pool_forward too.
[[nodiscard]] std::size_t conv_pool_workspace_bytes(const Context& context, const Window& conv,
                                                    const Window& pool, const Shape& x,
                                                    const Shape& w, int shards);

/// logits = x w^T + b, then softmax_cross_entropy of them. x (N, ...), w (O,D), logits (N,O), O at
/// most kFusedLinearOutputs. `b` and dlogits may have null data. One launch.
void linear_loss(Context& context, ConstFloatView x, ConstFloatView w, ConstFloatView b,
                 const Targets& targets, const StepState* state, FloatView logits, float* loss,
                 float* correct, FloatView dlogits);

/// The gradients of the fully connected layer, dy (N,O), O as above. Overwrites dx; its data is
/// null when nobody needs it, as db's may be. One launch.
void linear_backward(Context& context, ConstFloatView x, ConstFloatView w, ConstFloatView dy,
                     FloatView dw, FloatView db, bool accumulate, FloatView dx, int shards,
                     std::int64_t grads_stride);

/// Bytes of workspace that linear_backward needs.
[[nodiscard]] std::size_t linear_backward_workspace_bytes(const Shape& x, std::int64_t outputs,
                                                          int shards);

}  // namespace lockstep
