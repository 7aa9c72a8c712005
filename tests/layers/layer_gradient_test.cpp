// Each layer, bound by hand, against finite differences. All are linear in each argument as long as
// no kink is crossed, so central differences are exact but for rounding, whatever their step.
#include <cmath>

#include "lockstep/core/buffer.h"
#include "lockstep/layers/descriptions.h"

#include "layers/values.h"
#include "support/catch.h"

using namespace lockstep;
using lockstep::test::value;

namespace {

struct Input {
  float (*x)(std::int64_t);  ///< value of element i of x
  float step;                ///< of the finite differences
};

/// A layer with buffers of its own; the loss is the sum of y times fixed weights, dy.
class Bench {
 public:
  template <class Description>
  Bench(const Description& description, const Shape& sample, std::int64_t n, const Input& input)
      : step_(input.step), x_shape_(sample.with_first(n)) {
    const Shape y_shape = description.output_shape(sample).with_first(n);
    x_ = floats(x_shape_.count(), input.x);
    y_ = floats(y_shape.count(), [](std::int64_t) { return NAN; });
    dx_ = floats(x_shape_.count(), [](std::int64_t) { return NAN; });
    dy_ = floats(y_shape.count(), [](std::int64_t i) { return value(11, i); });
    saved_ = Buffer(Device{}, description.saved_bytes(x_shape_, y_shape), "saved");
    samples_.resize(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < samples_.size(); ++i) samples_[i] = static_cast<std::int32_t>(i);
    Binding binding{.name = "layer",
                    .number = 4,
                    .seed = 21,
                    .x = {x_.data(), x_shape_, Layout::n16},
                    .y = {y_.data(), y_shape, Layout::n16},
                    .dx = {dx_.data(), x_shape_, Layout::n16},
                    .dy = {dy_.data(), y_shape, Layout::n16},
                    .saved = saved_.as<std::uint8_t>()};
    for (const ParameterSpec& spec : description.parameters()) {
      values_.push_back(floats(spec.shape.count(), [](std::int64_t i) { return value(12, i); }));
      grads_.push_back(floats(spec.shape.count(), [](std::int64_t) { return NAN; }));
      binding.parameters.push_back(
          {{values_.back().data(), spec.shape}, {grads_.back().data(), spec.shape}});
    }
    context_.reserve_workspace(description.workspace_bytes(context_, x_shape_));
    layer_ = description.bind(binding);
  }

  void check() {
    forward();
    layer_->backward(context_, pass(), true);
    INFO("dx");
    check_tensor(x_, dx_);
    for (std::size_t p = 0; p < values_.size(); ++p) {
      INFO("parameter " << p);
      check_tensor(values_[p], grads_[p]);
    }
    check_accumulation();
  }

 private:
  template <class F>
  static Arena floats(std::int64_t count, F&& f) {
    Arena arena(Device{}, count, "a test");
    for (std::int64_t i = 0; i < count; ++i) arena.data()[i] = static_cast<float>(f(i));
    return arena;
  }

  [[nodiscard]] Pass pass() const { return {&state_, samples_.data(), true}; }

  double forward() {
    layer_->forward(context_, pass());
    double loss = 0;
    for (std::int64_t i = 0; i < y_.size(); ++i) loss += double{y_.data()[i]} * dy_.data()[i];
    return loss;
  }

  /// About 60 coordinates, in float32 forward passes: within 1e-3 of the largest.
  void check_tensor(const Arena& values, const Arena& grad) {
    const std::int64_t stride = std::max<std::int64_t>(1, values.size() / 61);
    double largest = 0;
    double worst = 0;
    for (std::int64_t i = 0; i < values.size(); i += stride) {
      float& coordinate = values.data()[i];
      const float before = coordinate;
      coordinate = before + step_;
      const double above = forward();
      coordinate = before - step_;
      const double width = double{before + step_} - coordinate;
      const double below = forward();
      coordinate = before;
      const double wanted = (above - below) / width;
      largest = std::max(largest, std::abs(wanted));
      const double error = std::abs(wanted - grad.data()[i]);
      worst = std::isfinite(error) ? std::max(worst, error) : 1e30;
    }
    CHECK(largest > 0.1);
    CHECK(worst < 1e-3 * largest);
  }

  void check_accumulation() {
    std::vector<std::vector<float>> once;
    for (const Arena& grad : grads_) once.emplace_back(grad.data(), grad.data() + grad.size());
    forward();
    layer_->backward(context_, pass(), false);
    for (std::size_t p = 0; p < once.size(); ++p) {
      for (std::size_t i = 0; i < once[p].size(); ++i) {
        REQUIRE(grads_[p].data()[i] == Approx(2 * once[p][i]).epsilon(1e-4).margin(1e-4));
      }
    }
  }

  float step_;
  Shape x_shape_;
  Context context_{Device{}};
  StepState state_;
  Arena x_, y_, dx_, dy_;
  Buffer saved_;
  std::vector<std::int32_t> samples_;
  std::vector<Arena> values_, grads_;
  std::unique_ptr<Layer> layer_;
};

/// Any values: for layers without kinks.
constexpr Input kAny{[](std::int64_t i) { return value(10, i); }, 0.25F};
/// At least 0.2 from 0.
constexpr Input kOffZero{
    [](std::int64_t i) { return value(10, i) + (value(10, i) < 0 ? -0.2F : 0.2F); }, 0.1F};
/// All different by at least 1/64.
constexpr Input kDistinct{
    [](std::int64_t i) { return static_cast<float>((i * 7919) % 10007) / 64.0F; }, 1.0F / 256};

}  // namespace

TEST_CASE("conv2d layers have the right gradients", "[layers]") {
  Bench(Conv2d{.in = 1, .out = 1}, {1, 1, 1}, 16, kAny).check();
  Bench(Conv2d{.in = 2, .out = 3, .kernel = 3, .padding = same}, {2, 5, 7}, 16, kAny).check();
  Bench(
      Conv2d{.in = 3, .out = 2, .kernel = {2, 4}, .stride = {2, 1}, .padding = same, .bias = false},
      {3, 7, 5}, 32, kAny)
      .check();
  Bench(Conv2d{.in = 1, .out = 5, .kernel = {3, 1}, .stride = 2, .padding = {2, 1}}, {1, 6, 6}, 16,
        kAny)
      .check();
}

TEST_CASE("linear layers have the right gradients", "[layers]") {
  Bench(Linear{.in = 1, .out = 1}, {1}, 16, kAny).check();
  Bench(Linear{.in = 13, .out = 7}, {13}, 48, kAny).check();
  Bench(Linear{.in = 33, .out = 10, .bias = false}, {33}, 16, kAny).check();
}

TEST_CASE("maxpool2d layers have the right gradients", "[layers]") {
  Bench(MaxPool2d{.kernel = 2}, {1, 4, 6}, 16, kDistinct).check();
  Bench(MaxPool2d{.kernel = 2, .padding = same}, {2, 5, 3}, 16, kDistinct).check();
  Bench(MaxPool2d{.kernel = {3, 2}, .stride = {2, 1}, .padding = {1, 0}}, {1, 7, 5}, 16, kDistinct)
      .check();
}

TEST_CASE("layers without parameters have the right gradients", "[layers]") {
  Bench(ReLU{}, {3, 2, 5}, 16, kOffZero).check();
  Bench(ReLU{}, {7}, 32, kOffZero).check();
  Bench(Dropout{.rate = 0.4F}, {3, 2, 5}, 16, kAny).check();
  Bench(Dropout{.rate = 0}, {7}, 16, kAny).check();
}
