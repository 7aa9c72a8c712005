// Optimizers as values; they work on whole arenas and know no layer.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "lockstep/core/context.h"
#include "lockstep/core/step_state.h"
#include "lockstep/kernels/optimize.h"

namespace lockstep {

/// Adam. `lr` is the base that the schedule works on; epsilon must be above 0.
struct Adam {
  double lr = 1e-3;
  float beta1 = 0.9F;
  float beta2 = 0.999F;
  float epsilon = 1e-8F;
  EpsilonPlace epsilon_place = EpsilonPlace::outside;
};

/// Adam with decoupled weight decay on the parameters that decay (weights, not biases).
struct AdamW {
  double lr = 1e-3;
  float beta1 = 0.9F;
  float beta2 = 0.999F;
  float epsilon = 1e-8F;
  float weight_decay = 1e-2F;
};

/// Stochastic gradient descent, with momentum when that is above 0.
struct Sgd {
  double lr = 1e-2;
  float momentum = 0;
  bool nesterov = false;
};

/// One of the above, checked.
class Optimizer {
 public:
  /// Throws UsageError for values that cannot work: epsilon not above 0, a beta outside [0, 1), lr
  /// negative or not finite.
  Optimizer(Adam adam);    // NOLINT(google-explicit-constructor)
  Optimizer(AdamW adamw);  // NOLINT(google-explicit-constructor)
  Optimizer(Sgd sgd);      // NOLINT(google-explicit-constructor)

  [[nodiscard]] double base_lr() const;
  /// Names of the moments it keeps per parameter, in the order `update` takes them: {"exp_avg",
  /// "exp_avg_sq"} or
  /// {"momentum"} or none.
  [[nodiscard]] std::vector<std::string> moment_names() const;
  /// "adam", "adamw" or "sgd".
  [[nodiscard]] std::string name() const;
  /// One line with all values, for configurations and logs.
  [[nodiscard]] std::string describe() const;
  [[nodiscard]] bool needs_decay_mask() const;

  /// One update of `count` floats; arenas of one layout, see kernels/optimize.h. `decay_mask` may
  /// be null unless needs_decay_mask(). `moments` has as many pointers as moment_names().
  void update(Context& context, const StepState* state, const float* grads, const float* decay_mask,
              float* params, float* const* moments, std::int64_t count) const;

  [[nodiscard]] const std::variant<Adam, AdamW, Sgd>& value() const { return value_; }

 private:
  std::variant<Adam, AdamW, Sgd> value_;
};

}  // namespace lockstep
