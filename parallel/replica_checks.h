// What is wrong with replicas: a step that is not finite, or weights that are no longer equal.
// Internal.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockstep/core/device.h"
#include "lockstep/parallel/replica.h"

namespace lockstep {

/// Says where step `state` is not finite. `found` is what find_nonfinite found on every rank.
[[nodiscard]] std::string nonfinite_message(const StepState& state,
                                            const std::vector<Nonfinite>& found,
                                            const std::vector<Device>& devices);

/// Throws DivergenceError when the ranks' `hashes` (hash_state) are not all equal: it names the
/// ranks that differ from most others, and the first tensor and element. `moments` are the
/// optimizer's names.
void require_equal(const std::vector<std::vector<std::uint64_t>>& hashes,
                   const std::vector<std::unique_ptr<Replica>>& replicas,
                   const ParameterLayout& layout, const std::vector<std::string>& moments,
                   const std::vector<Device>& devices);

}  // namespace lockstep
