// What a step does beside its layers: batch, loss, optimizer.
#include "lockstep/core/error.h"
#include "lockstep/kernels/gather.h"
#include "lockstep/kernels/optimize.h"
#include "lockstep/kernels/reduce.h"
#include "lockstep/kernels/softmax_cross_entropy.h"

#include "apps/lockstep_bench/catalogue.h"

namespace lockstep::apps {

namespace {

constexpr std::int64_t kArenas[] = {8000, 1000000};

void softmax(Catalogue& list, std::int64_t classes, std::int64_t block) {
  const std::string shape = message(classes, " classes");
  if (!list.wanted("softmax_cross_entropy", shape)) return;
  Draft d("softmax_cross_entropy", shape, block);
  auto* const state = d.values<StepState>(1);
  state->inverse_samples = 1 / static_cast<float>(block);
  const Targets targets{.sample_index = d.sample_index(), .classes = d.values<std::int32_t>(block)};
  const FloatView logits = d.activation({classes});
  float* const loss = d.values<float>(block);
  float* const correct = d.values<float>(block);
  const FloatView dlogits = d.activation({classes});
  // Maximum, difference, exponential, sum, quotient; the gradient's difference.
  constexpr double kEach = 6;
  list.add(d, kEach * static_cast<double>(block * classes), [=, &context = list.context()] {
    softmax_cross_entropy(context, logits, targets, state, loss, correct, dlogits);
  });
}

void gather_bytes(Catalogue& list, const Shape& sample, std::int64_t block) {
  const std::string shape = message(sample.count(), " uint8");
  if (!list.wanted("gather", shape)) return;
  Draft d("gather", shape, block);
  auto* const state = d.values<StepState>(1);
  state->real_samples = static_cast<std::uint32_t>(block);
  auto* const bytes = d.values<std::uint8_t>(block * sample.count());
  for (std::int64_t i = 0; i < block * sample.count(); ++i) {
    bytes[i] = static_cast<std::uint8_t>(i % 251);
  }
  auto* const permutation = d.values<std::int32_t>(block);
  for (std::int64_t i = 0; i < block; ++i) {
    permutation[i] = static_cast<std::int32_t>((i * 5) % block);
  }
  const DeviceSamples samples{.bytes = bytes,
                              .classes = d.values<std::int32_t>(block),
                              .count = block,
                              .features = sample.count(),
                              .scale = 1.0F / 255};
  const EpochTables tables{
      .permutation = permutation, .samples = block, .steps = 1, .batch_size = block};
  const GatheredBlock out{.x = d.activation(sample),
                          .sample_index = d.values<std::int32_t>(block),
                          .classes = d.values<std::int32_t>(block)};
  list.add(d, static_cast<double>(block * sample.count()), [=, &context = list.context()] {
    gather(context, samples, tables, state, 0, block, out);
  });
}

void adam(Catalogue& list, std::int64_t count) {
  const std::string shape = message(count, " parameters");
  if (!list.wanted("adam_update", shape)) return;
  Draft d("adam_update", shape, count);
  auto* const state = d.values<StepState>(1);
  state->learning_rate = 1e-3F;
  const float* const grads = d.floats(count);
  float* const params = d.floats(count, 2);
  float* const first = d.values<float>(count, 2);
  float* const second = d.values<float>(count, 2);
  // Clipping 1, first moment 3, second moment 4, root, epsilon, quotient, rate, difference.
  constexpr double kEach = 13;
  list.add(d, kEach * static_cast<double>(count), [=, &context = list.context()] {
    adam_update(context, {}, state, grads, nullptr, params, first, second, count);
  });
}

void squares(Catalogue& list, std::int64_t count) {
  const std::string shape = message(count, " parameters");
  if (!list.wanted("measure_gradient", shape)) return;
  Draft d("measure_gradient", shape, count);
  auto* const state = d.values<StepState>(1);
  const float* const grads = d.floats(count);
  auto* const scratch = d.values<double>(sum_scratch_doubles(count));
  list.add(d, 2.0 * static_cast<double>(count), [=, &context = list.context()] {
    measure_gradient(context, grads, count, 0, scratch, state);
  });
}

}  // namespace

void add_batches(Catalogue& list) {
  for (const std::int64_t block : {std::int64_t{kN16}, kMostSamples}) {
    softmax(list, 10, block);
    gather_bytes(list, {1, 28, 28}, block);
  }
}

void add_arenas(Catalogue& list) {
  for (const std::int64_t count : kArenas) {
    adam(list, count);
    squares(list, count);
  }
}

}  // namespace lockstep::apps
