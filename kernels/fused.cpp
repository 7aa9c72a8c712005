// The fused operations: checks and dispatch.
#include "lockstep/kernels/fused.h"

#include <limits>
#include <string_view>

#include "lockstep/config.h"
#include "lockstep/kernels/checks.h"
#include "lockstep/kernels/cpu/kernels.h"
#include "lockstep/kernels/cuda/kernels.h"
#include "lockstep/kernels/fused_geometry.h"
#include "lockstep/kernels/window_checks.h"

namespace lockstep {
namespace {

using checks::Named;

[[noreturn]] void refuse_cpu(std::string_view operation, const Context& context) {
  throw UsageError(message(operation, ": there is no fused kernel for ",
                           context.device().to_string(),
                           "; call the operations that it stands for"));
}

bool has_square(std::int64_t h, std::int64_t w, std::int64_t a, std::int64_t b) {
  return h == w && (h == a || h == b);
}

bool windows_fit(const Window& conv, const Window& pool) {
  return has_square(conv.kernel_h, conv.kernel_w, 3, 5) && conv.stride_h == 1 &&
         conv.stride_w == 1 && has_square(pool.kernel_h, pool.kernel_w, 2, 3) &&
         pool.stride_h == pool.kernel_h && pool.stride_w == pool.kernel_w && pool.pad_top == 0 &&
         pool.pad_left == 0 && pool.pad_bottom == 0 && pool.pad_right == 0;
}

/// Whether the CUDA kernels take shapes that fit the windows.
bool fits_cuda(const Window& conv, const Window& pool, const Shape& x, const Shape& w) {
  constexpr std::int64_t kMostExtent = 1024;  // so that sizes in shared memory are ints
  constexpr std::int64_t kMostSamples = std::numeric_limits<int>::max() / 1024;
  if (x[1] > kFusedConvInputs || w[0] > kFusedConvOutputs || x[0] > kMostSamples ||
      x[2] > kMostExtent || x[3] > kMostExtent || conv.pad_top >= conv.kernel_h ||
      conv.pad_left >= conv.kernel_w || conv.pad_bottom >= conv.kernel_h ||
      conv.pad_right >= conv.kernel_w) {
    return false;
  }
  const fused::ConvPool e = fused::conv_pool_of(conv, pool, x, w);
  return e.plane_bytes(e.image()) <= kFusedSharedBytes &&
         e.plane_bytes(e.gradient()) <= kFusedSharedBytes &&
         e.parameter_bytes() <= kFusedSharedBytes;
}

/// Whether the CPU kernels' 32-bit numbers hold the places of an image of a chunk of channels, and
/// the windows of a sample.
bool fits_cpu(const Window& conv, const Window& pool, const Shape& x, const Shape& w) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  constexpr std::int64_t kChunk = 16;
  const std::int64_t h = x[2] + conv.pad_top + conv.pad_bottom;
  const std::int64_t width = x[3] + conv.pad_left + conv.pad_right;
  const std::int64_t p = pool.output_h(conv.output_h(x[2]));
  const std::int64_t q = pool.output_w(conv.output_w(x[3]));
  return h <= kMost / kChunk / width && w[0] <= kMost / p / q;
}

/// What the CPU kernels get.
struct Geometries {
  cpu::WindowGeometry conv, pool;
};

Geometries geometries(const Window& conv, const Window& pool, const Shape& x, const Shape& w) {
  const cpu::WindowGeometry g = checks::window_geometry("conv_pool", conv, x, w[0]);
  return {g, checks::window_geometry("conv_pool", pool, {x[0], g.k, g.p, g.q}, g.k)};
}

/// Throws ShapeError unless the arguments are those of one convolution with pooling; each may be
/// its gradient. b is optional.
fused::ConvPool check_conv_pool(std::string_view operation, const Context& context,
                                const Window& conv, const Window& pool, const Named& x,
                                const Named& w, const Named& b, const Named& y) {
  checks::activation(operation, context, x.name, x.view);
  if (!conv_pool_is_fused(context, conv, pool, x.view.shape, w.view.shape)) {
    throw ShapeError(message(operation, ": ", x.name, " is ", x.view.shape, " and ", w.name, " is ",
                             w.view.shape,
                             "; with these windows there is no fused kernel for them, ask "
                             "conv_pool_is_fused first"));
  }
  const fused::ConvPool e = fused::conv_pool_of(conv, pool, x.view.shape, w.view.shape);
  checks::parameter(operation, w, {e.k, e.c, e.kernel, e.kernel});
  if (b.view.data != nullptr) checks::parameter(operation, b, {e.k});
  checks::activation(operation, context, y.name, y.view);
  checks::shape(operation, y.name, y.view.shape, {e.n, e.k, e.p, e.q});
  return e;
}

void check_shards(std::string_view operation, std::int64_t samples, int shards) {
  if (shards < 1 || shards > kFusedShards || samples < 1 || samples % shards != 0) {
    throw ShapeError(message(operation, ": ", samples, " samples in ", shards,
                             " slices; there must be 1 to ", kFusedShards,
                             " of them and all must have the same size"));
  }
}

void check_workspace(std::string_view operation, const Context& context, std::size_t bytes) {
  if (context.workspace_bytes() < bytes) {
    throw UsageError(message(operation, ": the workspace has ", context.workspace_bytes(),
                             " bytes; reserve ", bytes));
  }
}

/// Returns D. b is optional.
std::int64_t check_linear(std::string_view operation, const Context& context, const Named& x,
                          const Named& w, const Named& b, const Named& y) {
  if (context.on_cpu()) refuse_cpu(operation, context);
  checks::activation(operation, context, x.name, x.view);
  if (w.view.shape.rank() != 2 || w.view.shape[0] > kFusedLinearOutputs) {
    throw ShapeError(message(operation, ": ", w.name, " is ", w.view.shape,
                             "; it must be (O, D) with O at most ", kFusedLinearOutputs));
  }
  const std::int64_t o = w.view.shape[0];
  const std::int64_t d = x.view.shape.without_first().count();
  checks::parameter(operation, w, {o, d});
  if (b.view.data != nullptr) checks::parameter(operation, b, {o});
  checks::activation(operation, context, y.name, y.view);
  checks::shape(operation, y.name, y.view.shape, {x.view.shape[0], o});
  return d;
}

}  // namespace

bool conv_pool_is_fused(const Context& context, const Window& conv, const Window& pool,
                        const Shape& x, const Shape& w) {
  if (!windows_fit(conv, pool) || x.rank() != 4 || w.rank() != 4 || x[1] != w[1] || x[1] < 1 ||
      w[0] < 1 || pool.output_h(conv.output_h(x[2])) < 1 ||
      pool.output_w(conv.output_w(x[3])) < 1) {
    return false;
  }
  return context.on_cpu() ? fits_cpu(conv, pool, x, w) : fits_cuda(conv, pool, x, w);
}

void conv_pool_forward(Context& context, const Window& conv, const Window& pool, bool relu,
                       ConstFloatView x, ConstFloatView w, ConstFloatView b, FloatView y,
                       View<std::uint8_t> argmax) {
  constexpr std::string_view kName = "conv_pool_forward";
  check_conv_pool(kName, context, conv, pool, {"x", x}, {"w", w}, {"b", b}, {"y", y});
  if (argmax.data != nullptr) checks::same_shape(kName, "y", y, "argmax", argmax);
  if constexpr (kHasCuda) {
    if (!context.on_cpu()) {
      return cuda::conv_pool_forward(context, conv, pool, relu, x, w, b, y, argmax);
    }
  }
  check_workspace(kName, context,
                  conv_pool_workspace_bytes(context, conv, pool, x.shape, w.shape, 1));
  const Geometries g = geometries(conv, pool, x.shape, w.shape);
  cpu::kernels(context.cpu_set())
      .conv_pool.forward(g.conv, g.pool, relu, x.data, w.data, b.data, y.data, argmax.data,
                         context.workspace());
}

void conv_pool_backward(Context& context, const Window& conv, const Window& pool, bool relu,
                        ConstFloatView x, ConstFloatView w, ConstFloatView y,
                        View<const std::uint8_t> argmax, ConstFloatView dy, FloatView dw,
                        FloatView db, bool accumulate, FloatView dx, int shards,
                        std::int64_t grads_stride) {
  constexpr std::string_view kName = "conv_pool_backward";
  check_conv_pool(kName, context, conv, pool, {"x", x}, {"w", w}, {"db", db}, {"y", y});
  checks::parameter(kName, {"dw", dw}, w.shape);
  checks::same_shape(kName, "y", y, "argmax", argmax);
  checks::same_shape(kName, "y", y, "dy", dy);
  if (dx.data != nullptr) checks::same_shape(kName, "x", x, "dx", dx);
  check_workspace(kName, context,
                  conv_pool_workspace_bytes(context, conv, pool, x.shape, w.shape, shards));
  if constexpr (kHasCuda) {
    if (!context.on_cpu()) {
      return cuda::conv_pool_backward(context, conv, pool, relu, x, w, y, argmax, dy, dw, db,
                                      accumulate, dx, shards, grads_stride);
    }
  }
  const Geometries g = geometries(conv, pool, x.shape, w.shape);
  cpu::kernels(context.cpu_set())
      .conv_pool.backward(g.conv, g.pool, relu, x.data, w.data, y.data, argmax.data, dy.data,
                          dw.data, db.data, accumulate, dx.data, context.workspace());
}

std::size_t conv_pool_workspace_bytes(const Context& context, const Window& conv,
                                      const Window& pool, const Shape& x, const Shape& w,
                                      int shards) {
  if (context.on_cpu()) {
    if (shards != 1) {
      throw UsageError(
          message("conv_pool_backward: ", shards, " slices of a batch; on a CPU there is one"));
    }
    const Geometries g = geometries(conv, pool, x, w);
    return cpu::kernels(context.cpu_set()).conv_pool.workspace_bytes(g.conv, g.pool);
  }
  check_shards("conv_pool_backward", x[0], shards);
  const int parts = fused::cut_conv_batch(static_cast<int>(x[0] / shards)).parts;
  const std::int64_t tiles =
      fused::groups_of(static_cast<int>(w[0])) * fused::groups_of(static_cast<int>(w[1]));
  const std::int64_t sums = fused::kGroup * fused::kGroup * (w[2] * w[3] + 1);
  return static_cast<std::size_t>(shards * tiles * parts * sums) * sizeof(float);
}

void linear_loss(Context& context, ConstFloatView x, ConstFloatView w, ConstFloatView b,
                 const Targets& targets, const StepState* state, FloatView logits, float* loss,
                 float* correct, FloatView dlogits) {
  check_linear("linear_loss", context, {"x", x}, {"w", w}, {"b", b}, {"logits", logits});
  if (dlogits.data != nullptr) {
    checks::same_shape("linear_loss", "logits", logits, "dlogits", dlogits);
    if (state == nullptr) throw UsageError("linear_loss: the gradient needs the state of the step");
  }
  if (targets.sample_index == nullptr ||
      (targets.classes != nullptr) == (targets.soft != nullptr)) {
    throw UsageError(
        "linear_loss: targets must have sample numbers, and either class indices or soft targets");
  }
  if constexpr (kHasCuda) {
    cuda::linear_loss(context, x, w, b, targets, state, logits, loss, correct, dlogits);
  }
}

void linear_backward(Context& context, ConstFloatView x, ConstFloatView w, ConstFloatView dy,
                     FloatView dw, FloatView db, bool accumulate, FloatView dx, int shards,
                     std::int64_t grads_stride) {
  constexpr std::string_view kName = "linear_backward";
  const std::int64_t d = check_linear(kName, context, {"x", x}, {"w", w}, {"db", db}, {"dy", dy});
  checks::parameter(kName, {"dw", dw}, w.shape);
  if (dx.data != nullptr) checks::same_shape(kName, "x", x, "dx", dx);
  if (d > kFusedLinearInputs) {
    throw ShapeError(
        message(kName, ": x has ", d, " values a sample; there may be ", kFusedLinearInputs));
  }
  check_workspace(kName, context, linear_backward_workspace_bytes(x.shape, w.shape[0], shards));
  if constexpr (kHasCuda) {
    cuda::linear_backward(context, x, w, dy, dw, db, accumulate, dx, shards, grads_stride);
  }
}

std::size_t linear_backward_workspace_bytes(const Shape& x, std::int64_t outputs, int shards) {
  check_shards("linear_backward", x[0], shards);
  const int parts = fused::cut_linear_batch(static_cast<int>(x[0] / shards)).parts;
  const std::int64_t blocks = fused::column_blocks(x.without_first().count());
  return static_cast<std::size_t>(shards * blocks * parts * (outputs + 1) * fused::kLinearColumns) *
         sizeof(float);
}

}  // namespace lockstep
