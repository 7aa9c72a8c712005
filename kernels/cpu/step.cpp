// The opening of a step, and where its samples are.
#include <algorithm>
#include <atomic>

#include "lockstep/kernels/cpu/plain.h"
#include "lockstep/kernels/step_math.h"

namespace lockstep::cpu {

void open_step(const EpochTables& tables, const std::uint32_t* stop_request, StepState* state) {
  set_batch(tables, *state);
  // Loading through a const atomic_ref is not possible before C++26 (LWG 3508).
  state->stop = stop_request == nullptr ? 0
                                        : std::atomic_ref(const_cast<std::uint32_t&>(*stop_request))
                                              .load(std::memory_order_relaxed);
}

void gather_places(const DeviceSamples& samples, const EpochTables& tables, const StepState& state,
                   std::int64_t first_place, std::int64_t end_place, std::int64_t places,
                   const GatheredBlock& out) {
  const std::int64_t end = std::min<std::int64_t>(end_place, state.real_samples);
  const std::int64_t row = samples.soft_classes;
  for (std::int64_t n = 0; n < places; ++n) {
    const std::int64_t place = first_place + n;
    std::int32_t index = -1;
    if (place < end) {
      const std::int64_t visit = state.first_sample + place;
      index = tables.permutation != nullptr ? tables.permutation[visit]
                                            : static_cast<std::int32_t>(visit);
    }
    out.sample_index[n] = index;
    if (samples.classes != nullptr) out.classes[n] = index < 0 ? 0 : samples.classes[index];
    if (samples.soft != nullptr) {
      if (index < 0) {
        std::fill_n(out.soft + n * row, row, 0.0F);
      } else {
        std::copy_n(samples.soft + index * row, row, out.soft + n * row);
      }
    }
  }
}

}  // namespace lockstep::cpu
