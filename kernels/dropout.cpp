// Dropout: checks and dispatch.
#include "lockstep/kernels/dropout.h"

#include "lockstep/config.h"
#include "lockstep/core/random.h"
#include "lockstep/kernels/checks.h"
#include "lockstep/kernels/cpu/kernels.h"
#include "lockstep/kernels/cuda/kernels.h"
#include "lockstep/kernels/dropout_settings.h"

namespace lockstep {
namespace {

void check_rate(const char* operation, float rate) {
  // Written so that NaN fails.
  if (!(rate >= 0 && rate < 1)) {
    throw UsageError(
        message(operation, ": the rate is ", rate, "; it must be at least 0 and below 1"));
  }
}

}  // namespace

void dropout_forward(Context& context, float rate, const DropoutKey& key, const StepState* state,
                     const std::int32_t* sample_index, ConstFloatView x, FloatView y,
                     View<std::uint8_t> mask) {
  check_rate("dropout_forward", rate);
  checks::activation("dropout_forward", context, "x", x);
  checks::same_shape("dropout_forward", "x", x, "y", y);
  checks::same_shape("dropout_forward", "x", x, "mask", mask);
  if constexpr (kHasCuda) {
    if (!context.on_cpu()) {
      return cuda::dropout_forward(context, rate, key, state, sample_index, x, y, mask);
    }
  }
  const cpu::DropoutStream stream{
      .seed = key.seed,
      .epoch = state->epoch,
      .tag = (static_cast<std::uint32_t>(RandomPurpose::dropout) << 24) | (key.layer & 0xFFFFFFU)};
  cpu::kernels(context.cpu_set())
      .dropout.forward(x.shape[0] / kN16, x.shape.without_first().count(), stream, sample_index,
                       dropout_threshold(rate), dropout_scale(rate), x.data, y.data, mask.data);
}

void dropout_backward(Context& context, float rate, View<const std::uint8_t> mask,
                      ConstFloatView dy, FloatView dx) {
  check_rate("dropout_backward", rate);
  checks::activation("dropout_backward", context, "dy", dy);
  checks::same_shape("dropout_backward", "dy", dy, "mask", mask);
  checks::same_shape("dropout_backward", "dy", dy, "dx", dx);
  if constexpr (kHasCuda) {
    if (!context.on_cpu()) return cuda::dropout_backward(context, rate, mask, dy, dx);
  }
  cpu::kernels(context.cpu_set())
      .dropout.backward(dy.shape.count(), dropout_scale(rate), mask.data, dy.data, dx.data);
}

}  // namespace lockstep
