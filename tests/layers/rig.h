// A plan with everything around it, for tests: arenas, state, and a loop over the blocks of a
// batch.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "lockstep/kernels/gather.h"
#include "lockstep/layers/parameter.h"
#include "lockstep/layers/plan.h"

#include "layers/values.h"

namespace lockstep::test {

/// Samples with class indices, or soft targets where `soft_classes` is above 0.
struct Batch {
  Shape sample;
  std::int64_t count = 0;
  std::int64_t classes = 0;
  std::int64_t soft_classes = 0;
  std::vector<float> x{};
  std::vector<std::int32_t> targets{};
  std::vector<float> soft{};
};

inline Batch make_batch(const Shape& sample, std::int64_t count, std::int64_t classes,
                        bool soft = false) {
  Batch batch{.sample = sample,
              .count = count,
              .classes = classes,
              .soft_classes = soft ? classes : 0,
              .x = values(1, sample.with_first(count).count())};
  for (std::int64_t i = 0; i < count; ++i) {
    batch.targets.push_back(static_cast<std::int32_t>((i * 5 + 2) % classes));
  }
  if (soft) {
    for (std::int64_t i = 0; i < count * classes; ++i) {
      batch.soft.push_back((value(2, i) + 1) / static_cast<float>(classes));
    }
  }
  return batch;
}

class Rig {
 public:
  Rig(Sequential layers, const Shape& sample, const PlanOptions& options)
      : model(std::move(layers)),
        layout(model),
        params(Device{}, layout.size(), "parameters"),
        grads(Device{}, layout.gradient_size(), "gradients"),
        plan(context, model, layout, sample, options, params.data(), grads.data()) {
    initialize_parameters(layout, 5, params.data());
    for (const Parameter& parameter : layout.parameters()) {
      if (parameter.spec.decays) continue;
      for (std::int64_t i = 0; i < parameter.place.count; ++i) {
        params.at(parameter.place)[i] = 0.2F * value(3, i);  // biases that do something
      }
    }
    // Rubbish that a first block must overwrite.
    for (const Parameter& parameter : layout.parameters()) {
      std::fill_n(grads.at(parameter.place), parameter.place.count, 1e30F);
    }
  }

  void gather_block(const Batch& batch, std::int64_t first) {
    const DeviceSamples samples{.floats = batch.x.data(),
                                .classes = batch.soft_classes == 0 ? batch.targets.data() : nullptr,
                                .soft = batch.soft_classes == 0 ? nullptr : batch.soft.data(),
                                .count = batch.count,
                                .features = batch.sample.count(),
                                .soft_classes = batch.soft_classes};
    const EpochTables tables{.samples = batch.count, .steps = 1, .batch_size = batch.count};
    state.real_samples = static_cast<std::uint32_t>(batch.count);
    state.inverse_samples = 1 / static_cast<float>(batch.count);
    gather(context, samples, tables, &state, first, first + plan.block(), plan.input());
  }

  /// Forward, loss and backward of all blocks; returns the mean loss.
  double run(const Batch& batch) {
    double sum = 0;
    for (std::int64_t first = 0; first < batch.count; first += plan.block()) {
      gather_block(batch, first);
      plan.forward(context, &state);
      plan.loss(context, &state);
      for (std::int64_t i = 0; i < plan.block(); ++i) sum += plan.losses()[i];
      for (int layer = plan.layers() - 1; layer >= 0; --layer) {
        plan.backward(context, &state, layer, first == 0);
      }
    }
    return sum / static_cast<double>(batch.count);
  }

  [[nodiscard]] std::vector<float> gradients() const {
    return {grads.data(), grads.data() + layout.size()};
  }

  Context context{Device{}};
  Sequential model;
  ParameterLayout layout;
  Arena params;
  Arena grads;
  Plan plan;
  StepState state;
};

}  // namespace lockstep::test
