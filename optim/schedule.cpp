#include "lockstep/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "lockstep/core/error.h"
#include "lockstep/core/number_text.h"

namespace lockstep {

namespace {

void check_not_negative(const char* schedule, const char* what, double value) {
  if (std::isfinite(value) && value >= 0) return;
  throw UsageError(message(schedule, ": ", what, " is ", number_text(value),
                           "; it must be finite and not negative"));
}

ExponentialDecay checked(ExponentialDecay decay) {
  check_not_negative("exponential decay", "the factor", decay.factor);
  check_not_negative("exponential decay", "the minimum", decay.min);
  return decay;
}

StepDecay checked(StepDecay decay) {
  check_not_negative("step decay", "the factor", decay.factor);
  if (decay.every < 1) {
    throw UsageError(message("step decay: every ", decay.every, " epochs; it must be at least 1"));
  }
  return decay;
}

CosineDecay checked(CosineDecay decay) {
  check_not_negative("cosine decay", "the minimum", decay.min);
  if (decay.warmup_steps < 0) {
    throw UsageError(
        message("cosine decay: ", decay.warmup_steps, " warm-up steps; it must be at least 0"));
  }
  return decay;
}

double rate_of(const ConstantRate& /*rate*/, double base, const ScheduleStep& /*at*/) {
  return base;
}

double rate_of(const ExponentialDecay& decay, double base, const ScheduleStep& at) {
  return std::max(base * std::pow(decay.factor, static_cast<double>(at.epoch)), decay.min);
}

double rate_of(const StepDecay& decay, double base, const ScheduleStep& at) {
  const std::int64_t drops = at.epoch / decay.every;
  return base * std::pow(decay.factor, static_cast<double>(drops));
}

double rate_of(const CosineDecay& decay, double base, const ScheduleStep& at) {
  if (at.step < decay.warmup_steps) {
    return base * static_cast<double>(at.step + 1) / static_cast<double>(decay.warmup_steps);
  }
  // A training that ends with its warm-up, or right after it, has no room to fall.
  const std::int64_t last = at.total_steps - 1;
  if (last <= decay.warmup_steps) return base;
  const double done = std::min(1.0, static_cast<double>(at.step - decay.warmup_steps) /
                                        static_cast<double>(last - decay.warmup_steps));
  return decay.min + (base - decay.min) * 0.5 * (1 + std::cos(std::numbers::pi * done));
}

std::string text_of(const ConstantRate& /*rate*/) {
  return "constant";
}

std::string text_of(const ExponentialDecay& decay) {
  return message("exponential factor=", number_text(decay.factor), " min=", number_text(decay.min));
}

std::string text_of(const StepDecay& decay) {
  return message("step every=", decay.every, " factor=", number_text(decay.factor));
}

std::string text_of(const CosineDecay& decay) {
  return message("cosine warmup_steps=", decay.warmup_steps, " min=", number_text(decay.min));
}

}  // namespace

Schedule::Schedule(ConstantRate rate) : value_(rate) {}
Schedule::Schedule(ExponentialDecay decay) : value_(checked(decay)) {}
Schedule::Schedule(StepDecay decay) : value_(checked(decay)) {}
Schedule::Schedule(CosineDecay decay) : value_(checked(decay)) {}

double Schedule::rate(double base, const ScheduleStep& at) const {
  return std::visit([&](const auto& schedule) { return rate_of(schedule, base, at); }, value_);
}

bool Schedule::has_end() const {
  return std::holds_alternative<CosineDecay>(value_);
}

std::string Schedule::describe() const {
  return std::visit([](const auto& schedule) { return text_of(schedule); }, value_);
}

}  // namespace lockstep
