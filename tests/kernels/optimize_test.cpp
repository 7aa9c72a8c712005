#include "lockstep/kernels/optimize.h"

#include <algorithm>
#include <cmath>

#include "lockstep/kernels/reduce.h"

#include "kernels/samples.h"
#include "support/throws.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

constexpr int kSteps = 50;
const std::vector<std::int64_t> kCounts = {1, 15, 16, 17, 100};

using Doubles = std::vector<double>;

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

void check_close(const std::vector<float>& params, const Doubles& expected) {
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
Doubles reference_adam(const Problem& problem, const AdamParameters& adam) {
  const double beta1 = adam.beta1, beta2 = adam.beta2, epsilon = adam.epsilon;
  Doubles p(problem.start.begin(), problem.start.end());
  Doubles m(p.size()), v(p.size());
  for (int step = 0; step < kSteps; ++step) {
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

Doubles reference_sgd(const Problem& problem, const SgdParameters& sgd) {
  Doubles p(problem.start.begin(), problem.start.end());
  Doubles velocity(p.size());
  for (int step = 0; step < kSteps; ++step) {
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

/// Three arenas that an optimizer changes.
struct Arenas {
  std::vector<float> params, first, second;
  explicit Arenas(const Problem& problem)
      : params(problem.start), first(problem.start.size()), second(problem.start.size()) {}
  friend bool operator==(const Arenas& a, const Arenas& b) {
    return same_bits(a.params, b.params) && same_bits(a.first, b.first) &&
           same_bits(a.second, b.second);
  }
};

struct AdamCase {
  AdamParameters parameters;
  void update(Context& context, const Problem& problem, const StepState& state,
              const std::vector<float>& grads, Arenas& arenas, std::int64_t begin,
              std::int64_t end) const {
    const float* mask = parameters.weight_decay > 0 ? problem.mask.data() + begin : nullptr;
    adam_update(context, parameters, &state, grads.data() + begin, mask,
                arenas.params.data() + begin, arenas.first.data() + begin,
                arenas.second.data() + begin, end - begin);
  }
};

struct SgdCase {
  SgdParameters parameters;
  void update(Context& context, const Problem&, const StepState& state,
              const std::vector<float>& grads, Arenas& arenas, std::int64_t begin,
              std::int64_t end) const {
    float* velocity = parameters.momentum > 0 ? arenas.first.data() + begin : nullptr;
    sgd_update(context, parameters, &state, grads.data() + begin, arenas.params.data() + begin,
               velocity, end - begin);
  }
};

const std::vector<AdamCase> kAdamCases = {
    {{}},
    {{.epsilon = 1e-3F}},
    {{.epsilon = 1e-3F, .epsilon_place = EpsilonPlace::inside}},
    {{.beta1 = 0.8F, .beta2 = 0.95F, .weight_decay = 0.5F}},
    {{.beta1 = 0.0F,
      .beta2 = 0.0F,
      .epsilon = 0.1F,
      .epsilon_place = EpsilonPlace::inside,
      .weight_decay = 0.1F}}};
const std::vector<SgdCase> kSgdCases = {
    {{}}, {{.momentum = 0.9F}}, {{.momentum = 0.9F, .nesterov = true}}};

/// Trains on the whole arena and beside it range by range, and compares the two bit by bit.
template <class Case>
std::vector<float> train(Context& context, const Case& optimizer, const Problem& problem) {
  Arenas whole(problem), parts(problem);
  const std::vector<std::int64_t> cuts = {0, problem.count / 3, problem.count / 2, problem.count};
  for (int step = 0; step < kSteps; ++step) {
    const StepState state = Problem::state(step);
    const std::vector<float> grads = problem.grads(step);
    optimizer.update(context, problem, state, grads, whole, 0, problem.count);
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
      optimizer.update(context, problem, state, grads, parts, cuts[i], cuts[i + 1]);
    }
    REQUIRE(parts == whole);
  }
  return whole.params;
}

template <class Case>
void check_frozen(Context& context, const Case& optimizer) {
  const Problem problem(37);
  Arenas arenas(problem);
  optimizer.update(context, problem, Problem::state(0), problem.grads(0), arenas, 0, 37);
  const Arenas before = arenas;
  StepState frozen = Problem::state(1);
  frozen.frozen = 1;
  frozen.clip_factor = kNan;
  optimizer.update(context, problem, frozen, not_written(37), arenas, 0, 37);
  CHECK(arenas == before);
}

}  // namespace

TEST_CASE("adam and adamw follow a trainer in double, and a range of the arena comes out the same",
          "[kernels]") {
  for_each_set([](Context& context) {
    for (const AdamCase& adam : kAdamCases) {
      for (const std::int64_t count : kCounts) {
        INFO("case " << &adam - kAdamCases.data() << ", count " << count);
        const Problem problem(count);
        check_close(train(context, adam, problem), reference_adam(problem, adam.parameters));
      }
    }
  });
}

TEST_CASE("sgd with its kinds of momentum follows a trainer in double", "[kernels]") {
  for_each_set([](Context& context) {
    for (const SgdCase& sgd : kSgdCases) {
      for (const std::int64_t count : kCounts) {
        INFO("case " << &sgd - kSgdCases.data() << ", count " << count);
        const Problem problem(count);
        check_close(train(context, sgd, problem), reference_sgd(problem, sgd.parameters));
      }
    }
  });
}

TEST_CASE("the first step of adam is the learning rate, whatever the gradient's size",
          "[kernels]") {
  for_each_set([](Context& context) {
    std::vector<float> params(17, 1.0F), first(17), second(17);
    std::vector<float> grads(17);
    for (std::size_t i = 0; i < grads.size(); ++i)
      grads[i] = std::pow(10.0F, static_cast<float>(i) - 5.0F);
    StepState state;
    state.learning_rate = 0.125F;
    adam_update(context, {.epsilon = 1e-12F}, &state, grads.data(), nullptr, params.data(),
                first.data(), second.data(), 17);
    for (const float value : params) CHECK(value == Approx(0.875).epsilon(1e-6));
  });
}

TEST_CASE("padding that is 0 stays 0", "[kernels]") {
  for_each_set([](Context& context) {
    const std::vector<float> zeros(32, 0.0F), ones(32, 1.0F);
    std::vector<float> params = zeros, first = zeros, second = zeros;
    StepState state;
    state.learning_rate = 0.1F;
    for (const EpsilonPlace place : {EpsilonPlace::outside, EpsilonPlace::inside}) {
      adam_update(context, {.epsilon_place = place, .weight_decay = 0.1F}, &state, zeros.data(),
                  ones.data(), params.data(), first.data(), second.data(), 32);
      CHECK(params == zeros);
      CHECK(second == zeros);
    }
  });
}

TEST_CASE("a frozen step leaves parameters and moments as they are, NaN gradients or not",
          "[kernels]") {
  for_each_set([](Context& context) {
    for (const AdamCase& adam : kAdamCases) check_frozen(context, adam);
    for (const SgdCase& sgd : kSgdCases) check_frozen(context, sgd);
  });
}

TEST_CASE("the L2 gradient is added element by element", "[kernels]") {
  for_each_set([](Context& context) {
    for (const std::int64_t count : kCounts) {
      const std::vector<float> factor = random_values(count, 1, 0, 0.1F);
      const std::vector<float> params = random_values(count, 2);
      const std::vector<float> before = random_values(count, 3);
      std::vector<float> grads = before;
      add_l2_gradient(context, factor.data(), params.data(), grads.data(), count);
      std::vector<float> parts = before;
      const std::int64_t cut = count / 3;
      add_l2_gradient(context, factor.data(), params.data(), parts.data(), cut);
      add_l2_gradient(context, factor.data() + cut, params.data() + cut, parts.data() + cut,
                      count - cut);
      REQUIRE(same_bits(parts, grads));
      for (std::size_t i = 0; i < grads.size(); ++i) {
        REQUIRE(grads[i] ==
                Approx(before[i] + static_cast<double>(factor[i]) * params[i]).margin(1e-7));
      }
    }
  });
}

TEST_CASE("measure_gradient clips what is too long and freezes on what is not finite",
          "[kernels]") {
  for_each_set([](Context& context) {
    const auto measure = [&](const std::vector<float>& grads, float max_norm,
                             std::uint32_t frozen = 0) {
      const auto count = static_cast<std::int64_t>(grads.size());
      std::vector<double> scratch(static_cast<std::size_t>(sum_scratch_doubles(count)));
      StepState state;
      state.grad_norm = kNan;
      state.clip_factor = kNan;
      state.frozen = frozen;
      measure_gradient(context, grads.data(), count, max_norm, scratch.data(), &state);
      CHECK(scratch[0] == 0);
      return state;
    };
    const std::vector<float> grads = {3, 4};
    CHECK(measure(grads, 0).grad_norm == 5);
    CHECK(measure(grads, 0).clip_factor == 1);
    CHECK(measure(grads, 2).clip_factor == 0.4F);
    CHECK(measure(grads, 5).clip_factor == 1);
    CHECK(measure(grads, 9).clip_factor == 1);
    CHECK(measure({}, 1).clip_factor == 1);
    CHECK(measure({}, 1).grad_norm == 0);
    CHECK(measure(grads, 2).frozen == 0);
    CHECK(measure(grads, 2, 1).frozen == 1);
    // The norm of the last is beyond float, its square is not beyond double.
    for (const float bad : {kNan, kInfinity, -kInfinity, 3e38F}) {
      const StepState state = measure(std::vector<float>(5000, bad), 2);
      CHECK(state.frozen == 1);
      CHECK_FALSE(std::isfinite(state.grad_norm));
    }
    CHECK(measure(std::vector<float>(100, 1e30F), 0).grad_norm == Approx(1e31));
  });
}

TEST_CASE("the norm has the same bits on every instruction set", "[kernels]") {
  for (const std::int64_t count : {1, 17, 4096, 4097, 3 * 4096 + 5}) {
    const std::vector<float> grads = random_values(count, 1, -3, 3);
    double squares = 0;
    for (const float g : grads) squares += static_cast<double>(g) * g;
    std::vector<double> scratch(static_cast<std::size_t>(sum_scratch_doubles(count)));
    const auto norm = [&](Context& context) {
      StepState state;
      measure_gradient(context, grads.data(), count, 0, scratch.data(), &state);
      return state.grad_norm;
    };
    Context baseline(Device{}, CpuSet::baseline);
    const float first = norm(baseline);
    CHECK(first == Approx(std::sqrt(squares)).epsilon(1e-6));
    for_each_set([&](Context& context) { CHECK(norm(context) == first); });
  }
}

TEST_CASE("close_step adds up the epoch and moves on, unless frozen", "[kernels]") {
  Context context(Device{});
  StepState state;
  state.step = 10;
  state.step_in_epoch = 3;
  state.real_samples = 4;
  StepTail tail;
  tail.loss = 8;
  tail.correct = 3;
  tail.stop = 2;
  const double l2 = 0.5;
  EpochSums sums;
  close_step(context, &tail, &l2, &state, &sums);
  CHECK(state.step == 11);
  CHECK(state.step_in_epoch == 4);
  CHECK(sums.last_loss == 2.5);
  CHECK(sums.ema / sums.ema_weight == Approx(2.5));
  tail.loss = 4;
  close_step(context, &tail, nullptr, &state, &sums);
  CHECK(sums.loss == 12);
  CHECK(sums.correct == 6);
  CHECK(sums.samples == 8);
  CHECK(sums.reg_loss == 0.5);
  CHECK(sums.steps == 2);
  CHECK(sums.last_loss == 1);
  CHECK(sums.ema_weight == Approx(1 - 0.9 * 0.9));
  CHECK(sums.ema == Approx(0.9 * 0.1 * 2.5 + 0.1 * 1));
  CHECK(sums.stop == 2);

  state.frozen = 1;
  tail.loss = kNan;
  tail.stop = 0;
  const EpochSums before = sums;
  close_step(context, &tail, nullptr, &state, &sums);
  CHECK(state.step == 12);
  CHECK(state.step_in_epoch == 5);
  CHECK(sums.loss == before.loss);
  CHECK(sums.ema == before.ema);
  CHECK(sums.last_loss == before.last_loss);
  CHECK(sums.steps == before.steps);
  CHECK(sums.stop == 0);
}

TEST_CASE("optimizers refuse settings that cannot work", "[kernels]") {
  Context context(Device{});
  std::vector<float> a(16), b(16), c(16);
  const std::vector<float> grads(16), mask(16);
  const StepState state;
  const auto adam = [&](const AdamParameters& parameters, const float* decay,
                        std::int64_t count = 16) {
    adam_update(context, parameters, &state, grads.data(), decay, a.data(), b.data(), c.data(),
                count);
  };
  CHECK(contains(message_of<UsageError>([&] { adam({.epsilon = 0}, nullptr); }),
                 "adam_update: epsilon is 0"));
  CHECK_THROWS_AS(adam({.epsilon = kNan}, nullptr), UsageError);
  CHECK_THROWS_AS(adam({.beta1 = 1}, nullptr), UsageError);
  CHECK_THROWS_AS(adam({.beta2 = -0.1F}, nullptr), UsageError);
  CHECK_THROWS_AS(adam({.weight_decay = -1}, mask.data()), UsageError);
  CHECK(contains(message_of<UsageError>([&] { adam({.weight_decay = 0.1F}, nullptr); }),
                 "decay mask"));
  CHECK_THROWS_AS(adam({}, nullptr, -1), ShapeError);
  const auto sgd = [&](const SgdParameters& parameters, float* velocity, std::int64_t count = 16) {
    sgd_update(context, parameters, &state, grads.data(), a.data(), velocity, count);
  };
  CHECK(contains(message_of<UsageError>([&] { sgd({.momentum = 1}, b.data()); }),
                 "sgd_update: momentum is 1"));
  CHECK_THROWS_AS(sgd({.momentum = kNan}, b.data()), UsageError);
  CHECK_THROWS_AS(sgd({.momentum = 0.9F}, nullptr), UsageError);
  CHECK_THROWS_AS(sgd({.nesterov = true}, nullptr), UsageError);
  CHECK_THROWS_AS(sgd({}, nullptr, -1), ShapeError);
  CHECK_THROWS_AS(add_l2_gradient(context, a.data(), b.data(), c.data(), -1), ShapeError);
  double scratch = 0;
  StepState measured;
  CHECK(contains(message_of<ShapeError>(
                     [&] { measure_gradient(context, grads.data(), -1, 0, &scratch, &measured); }),
                 "measure_gradient: count is -1"));
}
