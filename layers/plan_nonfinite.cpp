// A plan's search for the first value that is not finite.
#include <algorithm>
#include <cmath>
#include <cstddef>

#include "lockstep/core/error.h"
#include "lockstep/layers/name_errors.h"
#include "lockstep/layers/plan.h"

namespace lockstep {

namespace {

/// The place of the first sample that has a value which is not finite; -1 when none has.
std::int64_t first_bad_sample(const Context& context, const ConstFloatView& view) {
  const std::vector<float> values = context.read(view.data, view.shape.count());
  const std::int64_t samples = view.shape[0];
  const std::int64_t features = view.shape.count() / samples;
  std::int64_t first = samples;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i])) continue;
    const auto at = static_cast<std::int64_t>(i);
    const std::int64_t sample =
        view.layout == Layout::n16 ? at / (features * kN16) * kN16 + at % kN16 : at / features;
    first = std::min(first, sample);
  }
  return first == samples ? -1 : first;
}

}  // namespace

std::string Plan::find_nonfinite(Context& context, const StepState* state) {
  const auto sample_at = [&](std::int64_t place) {
    return message("sample ",
                   context.read(input_.sample_index, block_)[static_cast<std::size_t>(place)]);
  };
  if (const std::int64_t place = first_bad_sample(context, input_.x); place >= 0) {
    return sample_at(place);
  }
  const Pass block = pass(state);
  for (std::size_t i = 0; i < units_.size(); ++i) {
    naming_layer(names_[i], [&] { units_[i]->forward(context, block); });
    // The last layer's output may be the loss operation's to compute.
    if (linear_ && i + 1 == units_.size()) break;
    if (first_bad_sample(context, outputs_[i]) >= 0) return "the output of " + names_[i];
  }
  loss(context, state);
  if (linear_ && first_bad_sample(context, outputs_.back()) >= 0) {
    return "the output of " + names_.back();
  }
  if (const std::int64_t place = first_bad_sample(context, {losses(), Shape{block_}}); place >= 0) {
    return "the loss of " + sample_at(place);
  }
  return {};
}

}  // namespace lockstep
