// Learning-rate schedules against tables made by hand.
#include "lockstep/optim/schedule.h"

#include <cmath>
#include <limits>

#include "lockstep/core/error.h"

#include "support/catch.h"
#include "support/throws.h"

namespace lockstep {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

double at_epoch(const Schedule& schedule, double base, std::int64_t epoch) {
  return schedule.rate(base, {.epoch = epoch, .step = epoch * 430, .total_steps = 100000});
}

double at_step(const Schedule& schedule, double base, std::int64_t step, std::int64_t total) {
  return schedule.rate(base, {.epoch = 0, .step = step, .total_steps = total});
}

void check_close(double value, double expected) {
  CHECK(std::abs(value - expected) <= 1e-12 * std::abs(expected));
}

TEST_CASE("the constant rate is the base") {
  CHECK(at_epoch(Schedule{}, 0.25, 0) == 0.25);
  CHECK(at_epoch(Schedule{}, 0.25, 99) == 0.25);
  CHECK(Schedule{}.describe() == "constant");
}

TEST_CASE("the article's schedule") {
  const Schedule schedule = ExponentialDecay{};
  const double table[] = {0.01, 0.007, 0.0049, 0.00343, 0.002401, 0.0016807};
  for (std::int64_t epoch = 0; epoch < 6; ++epoch) {
    check_close(at_epoch(schedule, 0.01, epoch), table[epoch]);
  }
  // 0.01 * 0.7^19 = 1.1399e-5 is the last above the floor.
  check_close(at_epoch(schedule, 0.01, 19), 0.01 * std::pow(0.7, 19));
  CHECK(at_epoch(schedule, 0.01, 19) > 1e-5);
  CHECK(at_epoch(schedule, 0.01, 20) == 1e-5);
  CHECK(at_epoch(schedule, 0.01, 10000) == 1e-5);
  CHECK(schedule.describe() == "exponential factor=0.7 min=1e-05");
}

TEST_CASE("step decay changes every few epochs") {
  const Schedule schedule = StepDecay{.every = 3, .factor = 0.5};
  const double table[] = {0.8, 0.8, 0.8, 0.4, 0.4, 0.4, 0.2};
  for (std::int64_t epoch = 0; epoch < 7; ++epoch) {
    check_close(at_epoch(schedule, 0.8, epoch), table[epoch]);
  }
  CHECK(schedule.describe() == "step every=3 factor=0.5");
}

TEST_CASE("cosine decay falls from the base at its first step to the minimum at its last") {
  const Schedule schedule = CosineDecay{.min = 0.1};
  const double table[] = {0.9, 0.1 + 0.8 * (1 + std::sqrt(0.5)) / 2, 0.5,
                          0.1 + 0.8 * (1 - std::sqrt(0.5)) / 2, 0.1};
  for (std::int64_t step = 0; step < 5; ++step) {
    check_close(at_step(schedule, 0.9, step, 5), table[step]);
  }
  check_close(at_step(schedule, 0.9, 7, 5), 0.1);
  CHECK(schedule.describe() == "cosine warmup_steps=0 min=0.1");
}

TEST_CASE("cosine decay with warm-up rises first") {
  const Schedule schedule = CosineDecay{.warmup_steps = 4};
  const double table[] = {0.25, 0.5, 0.75, 1.0, 1.0, 0.5};
  for (std::int64_t step = 0; step < 6; ++step) {
    check_close(at_step(schedule, 1.0, step, 7), table[step]);
  }
  CHECK(std::abs(at_step(schedule, 1.0, 6, 7)) < 1e-15);
}

TEST_CASE("trainings too short for a cosine keep the base") {
  CHECK(at_step(CosineDecay{}, 0.5, 0, 1) == 0.5);
  CHECK(at_step(CosineDecay{.warmup_steps = 2}, 0.5, 1, 2) == 0.5);
  CHECK(at_step(CosineDecay{.warmup_steps = 2}, 0.5, 2, 3) == 0.5);
  CHECK(at_step(CosineDecay{.warmup_steps = 8}, 0.8, 1, 2) == 0.2);
}

TEST_CASE("schedules refuse values that cannot work") {
  for (const double bad : {-0.1, kNan, kInfinity}) {
    CHECK_THROWS_AS(Schedule(ExponentialDecay{.factor = bad}), UsageError);
    CHECK_THROWS_AS(Schedule(ExponentialDecay{.min = bad}), UsageError);
    CHECK_THROWS_AS(Schedule(StepDecay{.every = 1, .factor = bad}), UsageError);
    CHECK_THROWS_AS(Schedule(CosineDecay{.min = bad}), UsageError);
  }
  CHECK(test::contains(test::message_of<UsageError>([] { Schedule(StepDecay{.every = 0}); }),
                       "at least 1"));
  CHECK_THROWS_AS(Schedule(CosineDecay{.warmup_steps = -1}), UsageError);
}

TEST_CASE("only a schedule with an end depends on the number of steps in all") {
  for (const Schedule& schedule :
       {Schedule(ConstantRate{}), Schedule(ExponentialDecay{}), Schedule(StepDecay{}),
        Schedule(CosineDecay{}), Schedule(CosineDecay{.warmup_steps = 3})}) {
    INFO(schedule.describe());
    const auto rate = [&](std::int64_t total) {
      return schedule.rate(0.1, {.epoch = 1, .step = 10, .total_steps = total});
    };
    CHECK((rate(20) != rate(40)) == schedule.has_end());
  }
}

}  // namespace
}  // namespace lockstep
