#include "lockstep/optim/optimizer.h"

#include <cmath>
#include <type_traits>

#include "lockstep/core/error.h"
#include "lockstep/core/number_text.h"

namespace lockstep {

namespace {

/// Throws unless `value` is finite and in [0, below).
void check_range(const char* optimizer, const char* what, float value, float below) {
  if (std::isfinite(value) && value >= 0 && value < below) return;
  throw UsageError(message(optimizer, ": ", what, " is ", number_text(value),
                           "; it must be in [0, ", number_text(below), ")"));
}

/// Throws unless `value` is finite and not negative.
template <class Number>
void check_not_negative(const char* optimizer, const char* what, Number value) {
  if (std::isfinite(value) && value >= 0) return;
  throw UsageError(message(optimizer, ": ", what, " is ", number_text(value),
                           "; it must be finite and not negative"));
}

template <class AdamLike>
void check_adam(const char* optimizer, const AdamLike& adam) {
  check_not_negative(optimizer, "lr", adam.lr);
  check_range(optimizer, "beta1", adam.beta1, 1);
  check_range(optimizer, "beta2", adam.beta2, 1);
  if (!std::isfinite(adam.epsilon) || adam.epsilon <= 0) {
    throw UsageError(message(optimizer, ": epsilon is ", number_text(adam.epsilon),
                             "; it must be finite and above 0, for example 1e-08"));
  }
}

Adam checked(Adam adam) {
  check_adam("adam", adam);
  return adam;
}

AdamW checked(AdamW adamw) {
  check_adam("adamw", adamw);
  check_not_negative("adamw", "weight_decay", adamw.weight_decay);
  return adamw;
}

Sgd checked(Sgd sgd) {
  check_not_negative("sgd", "lr", sgd.lr);
  check_range("sgd", "momentum", sgd.momentum, 1);
  if (sgd.nesterov && sgd.momentum == 0) {
    throw UsageError("sgd: nesterov without momentum; give a momentum above 0, for example 0.9");
  }
  return sgd;
}

/// "lr=0.01 beta1=0.9 beta2=0.999 epsilon=1e-08"
template <class AdamLike>
std::string describe_adam(const AdamLike& adam) {
  return message("lr=", number_text(adam.lr), " beta1=", number_text(adam.beta1),
                 " beta2=", number_text(adam.beta2), " epsilon=", number_text(adam.epsilon));
}

}  // namespace

Optimizer::Optimizer(Adam adam) : value_(checked(adam)) {}
Optimizer::Optimizer(AdamW adamw) : value_(checked(adamw)) {}
Optimizer::Optimizer(Sgd sgd) : value_(checked(sgd)) {}

double Optimizer::base_lr() const {
  return std::visit([](const auto& optimizer) { return optimizer.lr; }, value_);
}

std::vector<std::string> Optimizer::moment_names() const {
  const auto* sgd = std::get_if<Sgd>(&value_);
  if (sgd == nullptr) return {"exp_avg", "exp_avg_sq"};
  if (sgd->momentum > 0) return {"momentum"};
  return {};
}

std::string Optimizer::name() const {
  if (std::holds_alternative<Adam>(value_)) return "adam";
  return std::holds_alternative<AdamW>(value_) ? "adamw" : "sgd";
}

std::string Optimizer::describe() const {
  if (const auto* adam = std::get_if<Adam>(&value_)) {
    const bool inside = adam->epsilon_place == EpsilonPlace::inside;
    return message("adam ", describe_adam(*adam), " epsilon_place=", inside ? "inside" : "outside");
  }
  if (const auto* adamw = std::get_if<AdamW>(&value_)) {
    return message("adamw ", describe_adam(*adamw),
                   " weight_decay=", number_text(adamw->weight_decay));
  }
  const auto& sgd = std::get<Sgd>(value_);
  return message("sgd lr=", number_text(sgd.lr), " momentum=", number_text(sgd.momentum),
                 " nesterov=", sgd.nesterov ? "true" : "false");
}

bool Optimizer::needs_decay_mask() const {
  const auto* adamw = std::get_if<AdamW>(&value_);
  return adamw != nullptr && adamw->weight_decay > 0;
}

void Optimizer::update(Context& context, const StepState* state, const float* grads,
                       const float* decay_mask, float* params, float* const* moments,
                       std::int64_t count) const {
  if (needs_decay_mask() && decay_mask == nullptr) {
    throw UsageError("adamw: update needs a decay mask when weight_decay is above 0");
  }
  if (const auto* sgd = std::get_if<Sgd>(&value_)) {
    float* velocity = sgd->momentum > 0 ? moments[0] : nullptr;
    sgd_update(context, {.momentum = sgd->momentum, .nesterov = sgd->nesterov}, state, grads,
               params, velocity, count);
    return;
  }
  AdamParameters parameters;
  if (const auto* adam = std::get_if<Adam>(&value_)) {
    parameters = {.beta1 = adam->beta1,
                  .beta2 = adam->beta2,
                  .epsilon = adam->epsilon,
                  .epsilon_place = adam->epsilon_place};
  } else {
    const auto& adamw = std::get<AdamW>(value_);
    parameters = {.beta1 = adamw.beta1,
                  .beta2 = adamw.beta2,
                  .epsilon = adamw.epsilon,
                  .weight_decay = adamw.weight_decay};
  }
  adam_update(context, parameters, state, grads, decay_mask, params, moments[0], moments[1], count);
}

}  // namespace lockstep
