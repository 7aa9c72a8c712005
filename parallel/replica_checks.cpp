#include "lockstep/parallel/replica_checks.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "lockstep/core/error.h"
#include "lockstep/kernels/reduce.h"

namespace lockstep {

namespace {

/// Names of the parameters that have a value which is not finite, in the order of the layers.
std::vector<std::string> nonfinite_parameters(const ParameterLayout& layout,
                                              const std::vector<float>& arena) {
  std::vector<std::string> names;
  for (const Parameter& parameter : layout.parameters()) {
    const auto first = arena.begin() + parameter.place.offset;
    const auto finite = [](float value) { return std::isfinite(value); };
    if (!std::all_of(first, first + parameter.place.count, finite)) names.push_back(parameter.name);
  }
  return names;
}

std::string rank_text(int rank, const std::vector<Device>& devices) {
  return message("rank ", rank, " (", devices[static_cast<std::size_t>(rank)].to_string(), ")");
}

/// "ranks 0, 2 and 3".
std::string ranks_text(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (i > 0) text += i + 1 == ranks.size() ? " and " : ", ";
    text += std::to_string(ranks[i]);
  }
  return text;
}

/// Where two arenas differ first: "fc.weight, element 17: 0.5 against 0.25"; empty when they do
/// not.
std::string first_difference(const ParameterLayout& layout, const std::vector<float>& one,
                             const std::vector<float>& other, const std::string& what) {
  for (const Parameter& parameter : layout.parameters()) {
    for (std::int64_t i = 0; i < parameter.place.count; ++i) {
      const auto at = static_cast<std::size_t>(parameter.place.offset + i);
      if (std::bit_cast<std::uint32_t>(one[at]) == std::bit_cast<std::uint32_t>(other[at]))
        continue;
      return message(parameter.name, what, ", element ", i, ": ", one[at], " against ", other[at]);
    }
  }
  return {};
}

std::string first_difference(const ParameterLayout& layout, const TrainingState& one,
                             const TrainingState& other, const std::vector<std::string>& moments) {
  std::string found = first_difference(layout, one.params, other.params, "");
  for (std::size_t i = 0; i < moments.size() && found.empty(); ++i) {
    found = first_difference(layout, one.moments[i], other.moments[i], "'s " + moments[i]);
  }
  return found.empty() ? "the padding between tensors" : found;
}

}  // namespace

std::string nonfinite_message(const StepState& state, const std::vector<Nonfinite>& found,
                              const std::vector<Device>& devices) {
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < found.size(); ++rank) {
    if (!found[rank].where.empty()) ranks.push_back(static_cast<int>(rank));
  }
  std::string where = "on no rank alone, so the sum over the ranks is too large";
  if (!ranks.empty()) {
    where = message("on ", rank_text(ranks.front(), devices), " first in ",
                    found[static_cast<std::size_t>(ranks.front())].where);
    if (ranks.size() > 1)
      where += message("; also on ", ranks_text({ranks.begin() + 1, ranks.end()}));
  }
  return message("training: at step ", state.step_in_epoch, " of epoch ", state.epoch,
                 " the gradient is not finite, ", where);
}

void require_equal(const std::vector<std::vector<std::uint64_t>>& hashes,
                   const std::vector<std::unique_ptr<Replica>>& replicas,
                   const ParameterLayout& layout, const std::vector<std::string>& moments,
                   const std::vector<Device>& devices) {
  const auto equals = [&](const std::vector<std::uint64_t>& hash) {
    return std::count(hashes.begin(), hashes.end(), hash);
  };
  const auto most = std::max_element(
      hashes.begin(), hashes.end(),
      [&](const auto& one, const auto& other) { return equals(one) < equals(other); });
  std::vector<int> alike;
  std::vector<int> odd;
  for (std::size_t rank = 0; rank < hashes.size(); ++rank) {
    (hashes[rank] == *most ? alike : odd).push_back(static_cast<int>(rank));
  }
  if (odd.empty()) return;
  const TrainingState right = replicas[static_cast<std::size_t>(alike.front())]->export_state();
  const TrainingState wrong = replicas[static_cast<std::size_t>(odd.front())]->export_state();
  throw DivergenceError(message(
      "training: after step ", right.step.step, " ", ranks_text(odd), " and ", ranks_text(alike),
      " are no longer equal: ", rank_text(odd.front(), devices), " first differs in ",
      first_difference(layout, wrong, right, moments),
      ". Replicas compute the same update, so memory or a device is faulty, or something has "
      "written to the weights; go on from a checkpoint, without that device"));
}

Nonfinite Replica::find_nonfinite(Communicator& communicator) {
  const std::vector<std::string> parameters =
      nonfinite_parameters(setup_.layout, context_.read(params_.data(), params_.size()));
  if (!parameters.empty()) return {"the parameter " + parameters.front(), true};

  seen_.step.frozen = 1;
  write_state();
  feed_->provide(context_, seen_.step.step_in_epoch);
  std::string found;
  nonfinite_ = &found;
  reduces_ = false;
  for (int index = 0; index < sharding_.per_replica(); index += shards_at_once_) {
    run_shards(communicator, index);
  }
  reduces_ = true;
  nonfinite_ = nullptr;
  if (!found.empty()) return {found};

  const std::vector<std::string> gradients =
      nonfinite_parameters(setup_.layout, context_.read(grads_.data(), grads_.size()));
  return {gradients.empty() ? "" : "the gradient of " + gradients.back()};
}

std::vector<std::uint64_t> Replica::hash_state() {
  std::vector<const Arena*> arenas{&params_};
  for (const Arena& moment : moments_) arenas.push_back(&moment);
  std::vector<std::uint64_t> hashes;
  for (const Arena* arena : arenas) {
    hash_floats(context_, arena->data(), arena->size(), scratch_.as<std::uint64_t>(),
                hash_.as<std::uint64_t>());
    hashes.push_back(context_.read(hash_.as<std::uint64_t>(), 1).front());
  }
  return hashes;
}

void Replica::skip_step() {
  ++seen_.step.step_in_epoch;
  ++seen_.sums.skipped;
  seen_.step.frozen = 0;
}

}  // namespace lockstep
