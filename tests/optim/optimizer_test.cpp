// Optimizers as values: what they refuse, what they are called, and that update reaches the right
// operation with the right numbers. The operations' own arithmetic is tested with the kernels.
#include "lockstep/optim/optimizer.h"

#include <cmath>
#include <limits>

#include "lockstep/core/buffer.h"
#include "lockstep/core/error.h"

#include "support/catch.h"
#include "support/throws.h"

namespace lockstep {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <class O>
std::string refusal(O optimizer) {
  return test::message_of<UsageError>([&] { Optimizer{optimizer}; });
}

TEST_CASE("optimizers refuse values that cannot work, saying which") {
  for (const float bad : {-1e-3F, kNan, kInfinity}) {
    CHECK(test::contains(refusal(Adam{.lr = bad}), "adam: lr"));
    CHECK(test::contains(refusal(AdamW{.lr = bad}), "adamw: lr"));
    CHECK(test::contains(refusal(Sgd{.lr = bad}), "sgd: lr"));
    CHECK(test::contains(refusal(AdamW{.weight_decay = bad}), "weight_decay"));
    CHECK(test::contains(refusal(Adam{.epsilon = bad}), "epsilon"));
  }
  for (const float bad : {-0.1F, 1.0F, 2.0F, kNan}) {
    CHECK(test::contains(refusal(Adam{.beta1 = bad}), "beta1"));
    CHECK(test::contains(refusal(Adam{.beta2 = bad}), "beta2"));
    CHECK(test::contains(refusal(AdamW{.beta1 = bad}), "beta1"));
    CHECK(test::contains(refusal(AdamW{.beta2 = bad}), "beta2"));
    CHECK(test::contains(refusal(Sgd{.momentum = bad}), "momentum"));
  }
  CHECK(refusal(Adam{.epsilon = 0}) ==
        "adam: epsilon is 0; it must be finite and above 0, for example 1e-08");
  CHECK(test::contains(refusal(AdamW{.epsilon = 0}), "adamw: epsilon"));
  CHECK(test::contains(refusal(Sgd{.nesterov = true}), "momentum above 0"));
  CHECK_NOTHROW(Optimizer(Adam{.lr = 0, .beta1 = 0, .beta2 = 0}));
}

TEST_CASE("names, moments and descriptions") {
  const Optimizer adam = Adam{.lr = 0.01, .epsilon_place = EpsilonPlace::inside};
  CHECK(adam.name() == "adam");
  CHECK(adam.moment_names() == std::vector<std::string>{"exp_avg", "exp_avg_sq"});
  CHECK(adam.base_lr() == 0.01);
  CHECK_FALSE(adam.needs_decay_mask());
  CHECK(adam.describe() == "adam lr=0.01 beta1=0.9 beta2=0.999 epsilon=1e-08 epsilon_place=inside");
  CHECK(test::contains(Optimizer(Adam{}).describe(), "epsilon_place=outside"));

  const Optimizer adamw = AdamW{.weight_decay = 0.05F};
  CHECK(adamw.name() == "adamw");
  CHECK(adamw.moment_names() == std::vector<std::string>{"exp_avg", "exp_avg_sq"});
  CHECK(adamw.needs_decay_mask());
  CHECK_FALSE(Optimizer(AdamW{.weight_decay = 0}).needs_decay_mask());
  CHECK(adamw.describe() == "adamw lr=0.001 beta1=0.9 beta2=0.999 epsilon=1e-08 weight_decay=0.05");

  const Optimizer sgd = Sgd{.lr = 0.1, .momentum = 0.9F, .nesterov = true};
  CHECK(sgd.name() == "sgd");
  CHECK(sgd.moment_names() == std::vector<std::string>{"momentum"});
  CHECK(Optimizer(Sgd{}).moment_names().empty());
  CHECK(sgd.describe() == "sgd lr=0.1 momentum=0.9 nesterov=true");
}

/// Arenas of one layout for one update; every element starts alike.
struct Fixture {
  static constexpr std::int64_t kCount = 32;

  Fixture() {
    for (std::int64_t i = 0; i < kCount; ++i) {
      params.data()[i] = 2.0F;
      grads.data()[i] = 0.5F;
      mask.data()[i] = i < kCount / 2 ? 1.0F : 0.0F;
    }
    state.step = 2;
    state.learning_rate = 0.125F;
  }

  void update(const Optimizer& optimizer, const float* decay_mask = nullptr) {
    float* moments[] = {first.data(), second.data()};
    optimizer.update(context, &state, grads.data(), decay_mask, params.data(), moments, kCount);
  }

  Context context{Device{}};
  Arena params{{}, kCount, "parameters"};
  Arena grads{{}, kCount, "gradients"};
  Arena mask{{}, kCount, "decay mask"};
  Arena first{{}, kCount, "first moment"};
  Arena second{{}, kCount, "second moment"};
  StepState state;
};

void check_close(float value, double expected) {
  CHECK(std::abs(value - expected) <= 1e-6 * std::abs(expected));
}

/// Adam's step for g = 0.5, moments 0 and t = 3, in double.
double adam_step(double beta1, double beta2, double epsilon, bool inside) {
  const double m = (1 - beta1) * 0.5;
  const double v = (1 - beta2) * 0.25;
  const double c1 = 1 - std::pow(beta1, 3);
  const double c2 = 1 - std::pow(beta2, 3);
  return inside ? 0.125 * std::sqrt(c2) / c1 * m / (std::sqrt(v) + epsilon)
                : 0.125 * (m / c1) / (std::sqrt(v / c2) + epsilon);
}

TEST_CASE("adam updates parameters and both moments in their order") {
  for (const EpsilonPlace place : {EpsilonPlace::outside, EpsilonPlace::inside}) {
    Fixture x;
    x.update(Adam{.beta1 = 0.75F, .beta2 = 0.5F, .epsilon = 0.25F, .epsilon_place = place});
    for (const std::int64_t i : {0, 31}) {
      check_close(x.params.data()[i],
                  2.0 - adam_step(0.75, 0.5, 0.25, place == EpsilonPlace::inside));
      check_close(x.first.data()[i], 0.125);
      check_close(x.second.data()[i], 0.125);
    }
  }
}

TEST_CASE("adam keeps its moments apart") {
  Fixture x;
  x.update(Adam{.beta1 = 0.5F, .beta2 = 0.75F});
  check_close(x.first.data()[0], 0.25);
  check_close(x.second.data()[0], 0.0625);
}

TEST_CASE("adamw decays where the mask says so") {
  Fixture x;
  const Optimizer optimizer =
      AdamW{.beta1 = 0.75F, .beta2 = 0.5F, .epsilon = 0.25F, .weight_decay = 0.5F};
  CHECK_THROWS_AS(x.update(optimizer), UsageError);
  CHECK(x.params.data()[0] == 2.0F);
  x.update(optimizer, x.mask.data());
  const double step = adam_step(0.75, 0.5, 0.25, false);
  check_close(x.params.data()[0], 2.0 - 0.125 * 0.5 * 2.0 - step);
  check_close(x.params.data()[31], 2.0 - step);
}

TEST_CASE("sgd with and without momentum") {
  Fixture plain;
  plain.update(Sgd{});
  check_close(plain.params.data()[0], 2.0 - 0.125 * 0.5);
  CHECK(plain.first.data()[0] == 0.0F);

  Fixture heavy;
  heavy.first.data()[0] = 1.0F;
  heavy.update(Sgd{.momentum = 0.5F});
  check_close(heavy.first.data()[0], 1.0);
  check_close(heavy.params.data()[0], 2.0 - 0.125 * 1.0);

  Fixture nesterov;
  nesterov.first.data()[0] = 1.0F;
  nesterov.update(Sgd{.momentum = 0.5F, .nesterov = true});
  check_close(nesterov.params.data()[0], 2.0 - 0.125 * (0.5 + 0.5 * 1.0));
  CHECK(nesterov.second.data()[0] == 0.0F);
}

TEST_CASE("optimizers without moments take none") {
  Fixture x;
  Optimizer(Sgd{}).update(x.context, &x.state, x.grads.data(), nullptr, x.params.data(), nullptr,
                          Fixture::kCount);
  check_close(x.params.data()[31], 2.0 - 0.125 * 0.5);
}

}  // namespace
}  // namespace lockstep
