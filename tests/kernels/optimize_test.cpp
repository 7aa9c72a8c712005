#include "lockstep/kernels/optimize.h"

#include <algorithm>
#include <cmath>

#include "lockstep/kernels/reduce.h"

#include "kernels/optimize_cases.h"
#include "kernels/samples.h"
#include "support/throws.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

/// Three arenas that an optimizer changes.
struct Arenas {
  std::vector<float> params, first, second;
  explicit Arenas(const Problem& problem)
      : params(problem.start), first(problem.start.size()), second(problem.start.size()) {}
  [[nodiscard]] ArenaPointers with(const Problem& problem, const std::vector<float>& grads) {
    return {grads.data(), problem.mask.data(), params.data(), first.data(), second.data()};
  }
  friend bool operator==(const Arenas& a, const Arenas& b) {
    return same_bits(a.params, b.params) && same_bits(a.first, b.first) &&
           same_bits(a.second, b.second);
  }
};

/// Trains on the whole arena and beside it range by range, and compares the two bit by bit.
template <class Case>
std::vector<float> train(Context& context, const Case& optimizer, const Problem& problem) {
  Arenas whole(problem), parts(problem);
  const std::vector<std::int64_t> cuts = {0, problem.count / 3, problem.count / 2, problem.count};
  for (int step = 0; step < kOptimizerSteps; ++step) {
    const StepState state = Problem::state(step);
    const std::vector<float> grads = problem.grads(step);
    optimizer.update(context, &state, whole.with(problem, grads), 0, problem.count);
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
      optimizer.update(context, &state, parts.with(problem, grads), cuts[i], cuts[i + 1]);
    }
    REQUIRE(parts == whole);
  }
  return whole.params;
}

template <class Case>
void check_frozen(Context& context, const Case& optimizer) {
  const Problem problem(37);
  Arenas arenas(problem);
  const StepState first = Problem::state(0);
  const std::vector<float> grads = problem.grads(0), rubbish = not_written(37);
  optimizer.update(context, &first, arenas.with(problem, grads), 0, 37);
  const Arenas before = arenas;
  StepState frozen = Problem::state(1);
  frozen.frozen = 1;
  frozen.clip_factor = kNan;
  optimizer.update(context, &frozen, arenas.with(problem, rubbish), 0, 37);
  CHECK(arenas == before);
}

}  // namespace

TEST_CASE("adam and adamw follow a trainer in double, and a range of the arena comes out the same",
          "[kernels]") {
  for_each_set([](Context& context) {
    for (const AdamCase& adam : kAdamCases) {
      for (const std::int64_t count : kOptimizerCounts) {
        INFO("case " << &adam - kAdamCases.data() << ", count " << count);
        const Problem problem(count);
        check_close(train(context, adam, problem), trained_in_double(problem, adam));
      }
    }
  });
}

TEST_CASE("sgd with its kinds of momentum follows a trainer in double", "[kernels]") {
  for_each_set([](Context& context) {
    for (const SgdCase& sgd : kSgdCases) {
      for (const std::int64_t count : kOptimizerCounts) {
        INFO("case " << &sgd - kSgdCases.data() << ", count " << count);
        const Problem problem(count);
        check_close(train(context, sgd, problem), trained_in_double(problem, sgd));
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
    for (const std::int64_t count : kOptimizerCounts) {
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
    check_measured_gradients(measure);
    CHECK(measure(std::vector<float>(100, 1e30F), 0).grad_norm == Approx(1e31));

    // A reduction that was cut off freezes too.
    for (const std::uint32_t abandoned : {0U, 1U}) {
      const std::vector<float> grads = {3, 4};
      StepState state;
      std::vector<double> scratch(static_cast<std::size_t>(sum_scratch_doubles(2)));
      measure_gradient(context, grads.data(), 2, 0, scratch.data(), &state, &abandoned);
      CHECK(state.frozen == abandoned);
    }
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
