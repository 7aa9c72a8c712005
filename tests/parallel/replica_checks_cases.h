// Trainings in which something goes wrong at a chosen place, on a CPU or on GPUs: what is not
// finite is found and named, and so are replicas that are no longer equal.
#pragma once

#include <atomic>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/parallel/trainer.h"

#include "support/catch.h"
#include "support/throws.h"
#include "support/tiny_data.h"

namespace lockstep::test {

/// What `Disturbed` layers do, while they train on device `device`.
struct Disturbance {
  enum class What { nothing, output, gradient, flip_weight, flip_bias };
  std::atomic<What> what{What::nothing};
  std::atomic<int> device{0};

  static Disturbance& instance() {
    static Disturbance one;
    return one;
  }
  void plant(What planted, int on) {
    device = on;
    what = planted;
  }
};

/// A linear layer that writes where it should not.
struct Disturbed : Linear {
  class Bound final : public Layer {
   public:
    Bound(std::unique_ptr<Layer> linear, const Binding& binding)
        : linear_(std::move(linear)), binding_(binding) {}

    void forward(Context& context, const Pass& pass) override {
      linear_->forward(context, pass);
      if (!pass.training) return;
      if (planted(context, Disturbance::What::output)) spoil(context, binding_.y.data);
      if (planted(context, Disturbance::What::flip_weight)) flip(context, 0);
      if (planted(context, Disturbance::What::flip_bias)) flip(context, 1);
    }
    void backward(Context& context, const Pass& pass, bool first_block) override {
      linear_->backward(context, pass, first_block);
      if (planted(context, Disturbance::What::gradient)) {
        spoil(context, binding_.parameters[0].grad.data + 2);
      }
    }

   private:
    static bool planted(const Context& context, Disturbance::What what) {
      const Disturbance& disturbance = Disturbance::instance();
      return disturbance.what == what && disturbance.device == context.device().index;
    }
    static void spoil(const Context& context, float* where) {
      const float nan = std::numeric_limits<float>::quiet_NaN();
      context.copy_to_device(where, &nan, sizeof nan);
      context.synchronize();
    }
    /// The lowest bit of element 5, once.
    void flip(const Context& context, std::size_t parameter) {
      auto* where = const_cast<float*>(binding_.parameters[parameter].value.data) + 5;
      const float value = context.read(where, 1).front();
      const auto flipped = std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) ^ 1U);
      context.copy_to_device(where, &flipped, sizeof flipped);
      context.synchronize();
      Disturbance::instance().what = Disturbance::What::nothing;
    }

    std::unique_ptr<Layer> linear_;
    Binding binding_;
  };

  [[nodiscard]] std::unique_ptr<Layer> bind(const Binding& binding) const {
    return std::make_unique<Bound>(Linear::bind(binding), binding);
  }
};

inline Sequential disturbed_net() {
  return {Conv2d{.in = 1, .out = 3, .kernel = 3, .padding = same},
          ReLU{},
          MaxPool2d{.kernel = 2},
          Flatten{},
          Disturbed{{.in = 48, .out = 12}},
          ReLU{},
          Linear{.in = 12, .out = 4}};
}

/// Operations one by one: the disturbance reads and writes between them.
inline TrainerOptions eager(OnNonfinite on_nonfinite = OnNonfinite::stop) {
  TrainerOptions options;
  options.graph = false;
  options.on_nonfinite = on_nonfinite;
  return options;
}

inline Dataset with_nan(std::int64_t sample) {
  const Dataset good = striped_images(96, 8, 4);
  Tensor pixels = good.tensor(0, 96);
  pixels.data()[sample * 64 + 7] = std::numeric_limits<float>::quiet_NaN();
  return Dataset::from_floats("bad", pixels, {good.classes(), good.classes() + 96}, 4);
}

inline bool all_finite(const std::vector<float>& values) {
  return std::all_of(values.begin(), values.end(),
                     [](float value) { return std::isfinite(value); });
}

/// NaN in an activation or a gradient of one rank is found there.
inline void nan_is_named(const Devices& devices) {
  const auto last = static_cast<int>(devices.list.size()) - 1;
  const struct {
    Disturbance::What what;
    const char* where;
  } kinds[] = {{Disturbance::What::output, "first in the output of fc_1"},
               {Disturbance::What::gradient, "first in the gradient of fc_1.weight"}};
  for (const auto& kind : kinds) {
    World world({.devices = devices});
    Trainer trainer(world, disturbed_net(), SoftmaxCrossEntropy{}, Adam{}, eager());
    trainer.begin(striped_images(96, 8, 4), {.batch_size = 16});
    trainer.run_steps(8);
    const std::vector<float> before = trainer.model().arena();
    Disturbance::instance().plant(kind.what, last);
    const std::string text = message_of<NonFiniteError>([&] { trainer.run_steps(1); });
    Disturbance::instance().plant(Disturbance::What::nothing, 0);
    CAPTURE(text);
    CHECK(contains(text, "at step 2 of epoch 1 "));
    CHECK(contains(text, "on rank " + std::to_string(last) + " (" +
                             devices.list.back().to_string() + ") " + kind.where));
    CHECK_FALSE(contains(text, "also"));
    CHECK(trainer.model().arena() == before);
    CHECK(trainer.step() == 8);
    trainer.run_steps(2);  // the step is tried again
    CHECK(trainer.step() == 10);
  }
}

/// A sample that is not finite is named, wherever it falls; skipped, the epoch goes on without its
/// batch.
inline void bad_sample_is_named_or_skipped(const Devices& devices) {
  World world({.devices = devices});
  const FitOptions fit{.epochs = 1, .batch_size = 16};
  Trainer stops(world, disturbed_net(), SoftmaxCrossEntropy{}, Adam{}, eager());
  const std::string text = message_of<NonFiniteError>([&] { stops.fit(with_nan(40), fit); });
  CAPTURE(text);
  CHECK(contains(text, "first in sample 40;"));
  CHECK(contains(text, "step " + std::to_string(stops.step()) + " of epoch 0"));
  CHECK(all_finite(stops.model().arena()));

  Trainer skips(world, disturbed_net(), SoftmaxCrossEntropy{}, Adam{}, eager(OnNonfinite::skip));
  std::vector<EpochStats> epochs;
  skips.on_epoch([&](const EpochStats& epoch) { epochs.push_back(epoch); });
  skips.fit(with_nan(40), {.epochs = 2, .batch_size = 16});
  REQUIRE(epochs.size() == 2);
  for (const EpochStats& epoch : epochs) {
    CHECK(epoch.steps == 5);
    CHECK(epoch.samples == 80);
    CHECK(epoch.skipped_steps == 1);
    CHECK(std::isfinite(epoch.train_loss));
  }
  CHECK(skips.step() == 10);
  CHECK(all_finite(skips.model().arena()));
}

/// Weights that are not finite end training also where steps would be skipped.
inline void bad_weights_are_named(const Devices& devices) {
  World world({.devices = devices});
  Model model(disturbed_net(), Shape{1, 8, 8}, 1);
  std::vector<float> arena = model.arena();
  arena[0] = std::numeric_limits<float>::infinity();  // the last layer's weights come first
  model.set_arena(arena);
  Trainer trainer(world, model, SoftmaxCrossEntropy{}, Adam{}, eager(OnNonfinite::skip));
  const std::string text = message_of<NonFiniteError>(
      [&] { trainer.fit(striped_images(96, 8, 4), {.epochs = 1, .batch_size = 16}); });
  CAPTURE(text);
  CHECK(contains(text, "on rank 0 (" + devices.list.front().to_string() +
                           ") first in the parameter fc_2.weight"));
  if (devices.list.size() > 1) CHECK(contains(text, "also on rank"));
}

/// An epoch of which nothing is left is an error.
inline void nothing_left_is_an_error(const Devices& devices) {
  World world({.devices = devices});
  Trainer trainer(world, disturbed_net(), SoftmaxCrossEntropy{}, Adam{}, eager(OnNonfinite::skip));
  const std::string text = message_of<NonFiniteError>(
      [&] { trainer.fit(with_nan(3), {.epochs = 1, .batch_size = 96}); });
  CHECK(contains(text, "Every step of this epoch had to be skipped"));
}

/// One bit of one replica's weights or moments is found at the next comparison.
inline void flipped_bit_is_named(const Devices& devices) {
  const auto ranks = static_cast<int>(devices.list.size());
  for (const auto what : {Disturbance::What::flip_weight, Disturbance::What::flip_bias}) {
    TrainerOptions options = eager();
    options.compare_every = 4;
    World world({.devices = devices});
    Trainer trainer(world, disturbed_net(), SoftmaxCrossEntropy{}, Adam{}, options);
    trainer.begin(striped_images(96, 8, 4), {.batch_size = 16});
    trainer.run_steps(5);
    Disturbance::instance().plant(what, 1);
    const std::string text = message_of<DivergenceError>([&] { trainer.run_steps(20); });
    CAPTURE(text);
    CHECK(contains(text, "after step 8 "));
    CHECK(contains(text, ranks == 2 ? "rank 1 and rank 0" : "rank 1 and ranks 0 and 2"));
    CHECK(contains(text, what == Disturbance::What::flip_weight
                             ? "first differs in fc_1.weight, element 5: "
                             : "first differs in fc_1.bias, element 5: "));
  }
}

}  // namespace lockstep::test
