// Learning-rate schedules as values.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace lockstep {

/// The base rate, always.
struct ConstantRate {};

/// max(base * factor^epoch, min): the article's, with factor 0.7 and min 1e-5.
struct ExponentialDecay {
  double factor = 0.7;
  double min = 1e-5;
};

/// base * factor^(epoch / every), integer division.
struct StepDecay {
  std::int64_t every = 1;  ///< epochs
  double factor = 0.1;
};

/// Linear from base / warmup_steps up to base over the first `warmup_steps` steps, then half a
/// cosine from base down to `min` at the last step. Loshchilov and Hutter, "SGDR" (ICLR 2017),
/// without restarts.
struct CosineDecay {
  std::int64_t warmup_steps = 0;
  double min = 0;
};

/// Where in the training a step stands.
struct ScheduleStep {
  std::int64_t epoch = 0;  ///< from 0
  std::int64_t step = 0;   ///< from 0, over the whole training
  std::int64_t total_steps = 0;
};

/// One of the above, checked.
class Schedule {
 public:
  Schedule() : Schedule(ConstantRate{}) {}
  /// Throw UsageError for values that cannot work: a factor or minimum below 0, `every` below 1.
  Schedule(ConstantRate rate);       // NOLINT(google-explicit-constructor)
  Schedule(ExponentialDecay decay);  // NOLINT(google-explicit-constructor)
  Schedule(StepDecay decay);         // NOLINT(google-explicit-constructor)
  Schedule(CosineDecay decay);       // NOLINT(google-explicit-constructor)

  [[nodiscard]] double rate(double base, const ScheduleStep& at) const;
  [[nodiscard]] std::string describe() const;
  /// Whether rates depend on ScheduleStep::total_steps.
  [[nodiscard]] bool has_end() const;

 private:
  std::variant<ConstantRate, ExponentialDecay, StepDecay, CosineDecay> value_;
};

}  // namespace lockstep
