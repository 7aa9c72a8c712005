// What the tests of the optimizers share: problems, settings, and trainers in double.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "lockstep/core/context.h"
#include "lockstep/kernels/optimize.h"

#include "kernels/samples.h"
#include "support/catch.h"

namespace lockstep::test {

inline constexpr int kOptimizerSteps = 50;
inline const std::vector<std::int64_t> kOptimizerCounts = {1, 15, 16, 17, 100};

using Doubles = std::vector<double>;

/// What measure_gradient must say of gradients; `measure` (gradients, largest norm, whether it was
/// frozen before) returns the state after it.
template <class Measure>
void check_measured_gradients(Measure measure) {
  const std::vector<float> grads = {3, 4};
  CHECK(measure(grads, 0.0F, 0U).grad_norm == 5);
  CHECK(measure(grads, 0.0F, 0U).clip_factor == 1);
  CHECK(measure(grads, 2.0F, 0U).clip_factor == 0.4F);
  CHECK(measure(grads, 5.0F, 0U).clip_factor == 1);
  CHECK(measure(grads, 9.0F, 0U).clip_factor == 1);
  CHECK(measure({}, 1.0F, 0U).clip_factor == 1);
  CHECK(measure({}, 1.0F, 0U).grad_norm == 0);
  CHECK(measure(grads, 2.0F, 0U).frozen == 0);
  CHECK(measure(grads, 2.0F, 1U).frozen == 1);
  // The norm of the last is beyond float, its square is not beyond double.
  for (const float bad : {kNan, kInfinity, -kInfinity, 3e38F}) {
    const StepState state = measure(std::vector<float>(5000, bad), 2.0F, 0U);
    CHECK(state.frozen == 1);
    CHECK_FALSE(std::isfinite(state.grad_norm));
  }
}

/// What both trainers start from and see: gradients of one step each, decay for every other
/// element.
struct Problem {
  std::int64_t count;
  std::vector<float> start, mask;

  explicit Problem(std::int64_t n) : count(n), start(random_values(n, 1)) {
    for (std::int64_t i = 0; i < n; ++i) mask.push_back(i % 2 == 0 ? 1.0F : 0.0F);
  }
  [[nodiscard]] std::vector<float> grads(int step) const {
    std::vector<float> g = random_values(count, 100 + static_cast<std::uint64_t>(step));
    for (std::size_t i = 0; i < g.size(); ++i) g[i] *= i % 3 == 0 ? 1e-4F : 1.0F;
    return g;
  }
  [[nodiscard]] static StepState state(int step) {
    StepState s;
    s.step = static_cast<std::uint64_t>(step);
    s.learning_rate = step < 20 ? 0.01F : 0.003F;
    s.clip_factor = step % 4 == 0 ? 0.5F : 1.0F;
    return s;
  }
};

inline void check_close(const std::vector<float>& params, const Doubles& expected) {
  double error = 0;
  double size = 0;
  for (std::size_t i = 0; i < params.size(); ++i) {
    REQUIRE(std::isfinite(params[i]));
    error += (params[i] - expected[i]) * (params[i] - expected[i]);
    size += expected[i] * expected[i];
  }
  REQUIRE(std::sqrt(error) <= 2e-6 * std::sqrt(size));
}

/// Adam and AdamW as the papers write them, in double.
inline Doubles reference_adam(const Problem& problem, const AdamParameters& adam) {
  const double beta1 = adam.beta1, beta2 = adam.beta2, epsilon = adam.epsilon;
  Doubles p(problem.start.begin(), problem.start.end());
  Doubles m(p.size()), v(p.size());
  for (int step = 0; step < kOptimizerSteps; ++step) {
    const StepState state = Problem::state(step);
    const std::vector<float> grads = problem.grads(step);
    const double rate = state.learning_rate;
    const double c1 = 1 - std::pow(beta1, step + 1), c2 = 1 - std::pow(beta2, step + 1);
    for (std::size_t i = 0; i < p.size(); ++i) {
      const double g = static_cast<double>(grads[i]) * state.clip_factor;
      m[i] = beta1 * m[i] + (1 - beta1) * g;
      v[i] = beta2 * v[i] + (1 - beta2) * g * g;
      p[i] -= rate * adam.weight_decay * problem.mask[i] * p[i];
      p[i] -= adam.epsilon_place == EpsilonPlace::outside
                  ? rate * (m[i] / c1) / (std::sqrt(v[i] / c2) + epsilon)
                  : rate * std::sqrt(c2) / c1 * m[i] / (std::sqrt(v[i]) + epsilon);
    }
  }
  return p;
}

inline Doubles reference_sgd(const Problem& problem, const SgdParameters& sgd) {
  Doubles p(problem.start.begin(), problem.start.end());
  Doubles velocity(p.size());
  for (int step = 0; step < kOptimizerSteps; ++step) {
    const StepState state = Problem::state(step);
    const std::vector<float> grads = problem.grads(step);
    for (std::size_t i = 0; i < p.size(); ++i) {
      const double g = static_cast<double>(grads[i]) * state.clip_factor;
      velocity[i] = sgd.momentum * velocity[i] + g;
      p[i] -= state.learning_rate * (sgd.nesterov ? g + sgd.momentum * velocity[i] : velocity[i]);
    }
  }
  return p;
}

/// Where the arenas of an optimizer are, on the host or on a device.
struct ArenaPointers {
  const float *grads, *mask;
  float *params, *first, *second;
};

/// Each case updates elements [begin, end) of the arenas.
struct AdamCase {
  AdamParameters parameters;
  void update(Context& context, const StepState* state, const ArenaPointers& at, std::int64_t begin,
              std::int64_t end) const {
    const float* mask = parameters.weight_decay > 0 ? at.mask + begin : nullptr;
    adam_update(context, parameters, state, at.grads + begin, mask, at.params + begin,
                at.first + begin, at.second + begin, end - begin);
  }
};

struct SgdCase {
  SgdParameters parameters;
  void update(Context& context, const StepState* state, const ArenaPointers& at, std::int64_t begin,
              std::int64_t end) const {
    float* velocity = parameters.momentum > 0 ? at.first + begin : nullptr;
    sgd_update(context, parameters, state, at.grads + begin, at.params + begin, velocity,
               end - begin);
  }
};

inline Doubles trained_in_double(const Problem& problem, const AdamCase& adam) {
  return reference_adam(problem, adam.parameters);
}
inline Doubles trained_in_double(const Problem& problem, const SgdCase& sgd) {
  return reference_sgd(problem, sgd.parameters);
}

inline const std::vector<AdamCase> kAdamCases = {
    {{}},
    {{.epsilon = 1e-3F}},
    {{.epsilon = 1e-3F, .epsilon_place = EpsilonPlace::inside}},
    {{.beta1 = 0.8F, .beta2 = 0.95F, .weight_decay = 0.5F}},
    {{.beta1 = 0.0F,
      .beta2 = 0.0F,
      .epsilon = 0.1F,
      .epsilon_place = EpsilonPlace::inside,
      .weight_decay = 0.1F}}};
inline const std::vector<SgdCase> kSgdCases = {
    {{}}, {{.momentum = 0.9F}}, {{.momentum = 0.9F, .nesterov = true}}};

}  // namespace lockstep::test
