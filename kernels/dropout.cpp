// Dropout: checks and dispatch.
#include "lockstep/kernels/dropout.h"

#include <cmath>

#include "lockstep/core/random.h"
#include "lockstep/kernels/checks.h"
#include "lockstep/kernels/cpu/kernels.h"

namespace lockstep {
namespace {

void check_rate(const char* operation, float rate) {
  // Written so that NaN fails.
  if (!(rate >= 0 && rate < 1)) {
    throw UsageError(
        message(operation, ": the rate is ", rate, "; it must be at least 0 and below 1"));
  }
}

float scale_of(float rate) {
  return 1.0F / (1.0F - rate);
}

/// uniform_float(word) >= rate means word >> 8 >= this; exact, since both sides are multiplied by a
/// power of two.
std::uint32_t threshold_of(float rate) {
  return static_cast<std::uint32_t>(std::ceil(rate * 0x1p24F));
}

}  // namespace

void dropout_forward(Context& context, float rate, const DropoutKey& key, const StepState* state,
                     const std::int32_t* sample_index, ConstFloatView x, FloatView y,
                     View<std::uint8_t> mask) {
  check_rate("dropout_forward", rate);
  checks::activation("dropout_forward", context, "x", x);
  checks::same_shape("dropout_forward", "x", x, "y", y);
  checks::same_shape("dropout_forward", "x", x, "mask", mask);
  if (!context.on_cpu()) checks::no_kernel("dropout_forward", context);
  const cpu::DropoutStream stream{
      .seed = key.seed,
      .epoch = state->epoch,
      .tag = (static_cast<std::uint32_t>(RandomPurpose::dropout) << 24) | (key.layer & 0xFFFFFFU)};
  cpu::kernels(context.cpu_set())
      .dropout.forward(x.shape[0] / kN16, x.shape.without_first().count(), stream, sample_index,
                       threshold_of(rate), scale_of(rate), x.data, y.data, mask.data);
}

void dropout_backward(Context& context, float rate, View<const std::uint8_t> mask,
                      ConstFloatView dy, FloatView dx) {
  check_rate("dropout_backward", rate);
  checks::activation("dropout_backward", context, "dy", dy);
  checks::same_shape("dropout_backward", "dy", dy, "mask", mask);
  checks::same_shape("dropout_backward", "dy", dy, "dx", dx);
  if (!context.on_cpu()) checks::no_kernel("dropout_backward", context);
  cpu::kernels(context.cpu_set())
      .dropout.backward(dy.shape.count(), scale_of(rate), mask.data, dy.data, dx.data);
}

}  // namespace lockstep
