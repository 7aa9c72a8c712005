// Layers that users write: described, trained and used like ours.
#include <cmath>

#include "lockstep/layers/model.h"

#include "layers/rig.h"
#include "support/catch.h"
#include "support/throws.h"

using namespace lockstep;
using lockstep::test::Batch;
using lockstep::test::make_batch;
using lockstep::test::message_of;
using lockstep::test::Rig;

namespace {

/// y = gain * x * x: has a parameter, and its backward pass reads x, and y for the gain.
struct ScaledSquare {
  std::string name{};

  static constexpr const char* kKind = "square";
  Shape output_shape(const Shape& in) const { return in; }
  std::vector<ParameterSpec> parameters() const {
    return {{.name = "gain", .shape = {1}, .initializer = normal(1)}};
  }
  std::string summary() const { return "scaled square"; }
  std::size_t saved_bytes(const Shape&, const Shape&) const { return 0; }
  std::size_t workspace_bytes(Context&, const Shape&) const { return 0; }
  std::unique_ptr<Layer> bind(const Binding& binding) const;
};

class ScaledSquareLayer final : public Layer {
 public:
  explicit ScaledSquareLayer(const Binding& binding) : t_(binding) {}
  void forward(Context&, const Pass&) override {
    const float gain = t_.parameters[0].value.data[0];
    for (std::int64_t i = 0; i < t_.x.shape.count(); ++i) {
      t_.y.data[i] = gain * t_.x.data[i] * t_.x.data[i];
    }
  }
  void backward(Context&, const Pass&, bool first_block) override {
    const float gain = t_.parameters[0].value.data[0];
    float& gain_grad = t_.parameters[0].grad.data[0];
    double sum = 0;
    for (std::int64_t i = 0; i < t_.x.shape.count(); ++i) {
      sum += double{t_.dy.data[i]} * t_.y.data[i] / gain;
      if (t_.dx.data != nullptr) t_.dx.data[i] = 2 * gain * t_.x.data[i] * t_.dy.data[i];
    }
    gain_grad = static_cast<float>(sum) + (first_block ? 0 : gain_grad);
  }

 private:
  Binding t_;
};

std::unique_ptr<Layer> ScaledSquare::bind(const Binding& binding) const {
  return std::make_unique<ScaledSquareLayer>(binding);
}

/// Throws where it is told to.
struct Faulty : ReLU {
  enum class Where { shape, bind, forward, backward } where;

  Shape output_shape(const Shape& in) const {
    if (where == Where::shape) throw ShapeError("no such shape");
    return in;
  }
  std::unique_ptr<Layer> bind(const Binding& binding) const;
};

class FaultyLayer final : public Layer {
 public:
  explicit FaultyLayer(Faulty::Where where) : where_(where) {}
  void forward(Context&, const Pass&) override {
    if (where_ == Faulty::Where::forward) throw DeviceError("out of order");
  }
  void backward(Context&, const Pass&, bool) override { throw NonFiniteError("not a number"); }

 private:
  Faulty::Where where_;
};

std::unique_ptr<Layer> Faulty::bind(const Binding&) const {
  if (where == Where::bind) throw UsageError("no");
  return std::make_unique<FaultyLayer>(where);
}

Sequential squares() {
  return {ScaledSquare{}, Linear{.in = 6, .out = 5}, ReLU{}, ScaledSquare{},
          Linear{.in = 5, .out = 3}};
}

void set_gains(Rig& rig) {
  rig.params.at(rig.layout.parameters()[0].place)[0] = 1.5F;
  rig.params.at(rig.layout.parameters()[3].place)[0] = -0.8F;
}

}  // namespace

TEST_CASE("a user's layer gets right gradients in and out", "[layers]") {
  const Batch batch = make_batch({6}, 40, 3);
  Rig rig(squares(), batch.sample, {.block = 16, .training = true});
  set_gains(rig);
  rig.run(batch);
  const std::vector<float> grads = rig.gradients();
  for (const Parameter& parameter : rig.layout.parameters()) {
    INFO(parameter.name);
    // The loss is float32 here: a wide step and a tolerance to match.
    float& coordinate = rig.params.at(parameter.place)[0];
    const float before = coordinate;
    coordinate = before + 0.01F;
    const double above = rig.run(batch);
    coordinate = before - 0.01F;
    const double below = rig.run(batch);
    coordinate = before;
    CHECK(grads[static_cast<std::size_t>(parameter.place.offset)] ==
          Approx((above - below) / 0.02).epsilon(0.01).margin(1e-4));
  }
}

TEST_CASE("a user's layer is named, described, trained and used like ours", "[layers]") {
  Batch batch = make_batch({6}, 32, 3);
  for (std::size_t i = 0; i < 32; ++i) {  // something to learn: which of three squares is largest
    const auto square = [&](std::size_t c) { return batch.x[6 * i + c] * batch.x[6 * i + c]; };
    const std::size_t winner = square(1) > square(0) ? 1 : 0;
    batch.targets[i] = static_cast<std::int32_t>(square(2) > square(winner) ? 2 : winner);
  }
  Rig rig(squares(), batch.sample, {.block = 16, .training = true});
  CHECK(rig.model.name(3) == "square_2");
  CHECK(test::contains(rig.model.describe({6}), "scaled square"));
  set_gains(rig);
  const double start = rig.run(batch);
  for (int step = 0; step < 300; ++step) {
    for (std::int64_t i = 0; i < rig.layout.size(); ++i) {
      rig.params.data()[i] -= 0.5F * rig.grads.data()[i];
    }
    rig.run(batch);
  }
  CHECK(rig.run(batch) < 0.5 * start);

  Model model(squares(), {6});
  model.set_arena({rig.params.data(), rig.params.data() + rig.params.size()});
  double loss = 0;
  const Tensor logits = model.predict(Tensor(Shape{32, 6}, batch.x));
  for (std::int64_t i = 0; i < 32; ++i) {
    const float* row = logits.data() + i * 3;
    const double sum =
        std::exp(double{row[0]}) + std::exp(double{row[1]}) + std::exp(double{row[2]});
    loss += (std::log(sum) - row[batch.targets[static_cast<std::size_t>(i)]]) / 32;
  }
  CHECK(loss == Approx(rig.run(batch)).epsilon(1e-4));
}

TEST_CASE("whatever a layer throws comes out under its name", "[layers]") {
  const auto model = [](Faulty::Where where) {
    Faulty faulty;
    faulty.name = "broken";
    faulty.where = where;
    return Sequential{Linear{.in = 4, .out = 4}, faulty};
  };
  const auto rig = [&](Faulty::Where where) {
    return std::make_unique<Rig>(model(where), Shape{4},
                                 PlanOptions{.block = 16, .training = true});
  };
  using Where = Faulty::Where;
  CHECK(message_of<ShapeError>([&] { (void)rig(Where::shape); }) == "broken: no such shape");
  CHECK(message_of<UsageError>([&] { (void)rig(Where::bind); }) == "broken: no");
  const auto forward = rig(Where::forward);
  CHECK(message_of<DeviceError>([&] {
          forward->plan.forward(forward->context, &forward->state);
        }) == "broken: out of order");
  const auto backward = rig(Where::backward);
  CHECK(message_of<NonFiniteError>([&] {
          backward->plan.backward(backward->context, &backward->state, 1, true);
        }) == "broken: not a number");
}

TEST_CASE("a layer with no parameters under it has no backward pass", "[layers]") {
  Faulty faulty;
  faulty.where = Faulty::Where::backward;
  Rig rig({faulty, Linear{.in = 4, .out = 4}}, {4}, {.block = 16, .training = true});
  CHECK_NOTHROW(rig.plan.backward(rig.context, &rig.state, 0, true));
}
