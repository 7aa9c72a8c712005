// Whole plans against finite differences of a double-precision loss.
#include <cmath>

#include "lockstep/layers/zoo.h"

#include "layers/rig.h"
#include "layers/scalar_net.h"
#include "support/catch.h"

using namespace lockstep;
using lockstep::test::Batch;
using lockstep::test::make_batch;
using lockstep::test::Rig;

namespace {

constexpr std::uint64_t kSeed = 17;

/// Compares the plan's loss and up to 40 coordinates of every parameter's gradient. Float32 against
/// double: the loss within 1e-5, a gradient within 1e-4 of the largest of its tensor (float32 sums
/// over a few hundred terms).
void check_gradients(const Sequential& model, const Batch& batch, std::int64_t block, bool fuse) {
  INFO("fused " << fuse);
  Rig rig(model, batch.sample,
          {.block = block,
           .training = true,
           .seed = kSeed,
           .soft_classes = batch.soft_classes,
           .fuse = fuse});
  const double loss = rig.run(batch);

  std::vector<double> params(rig.params.data(), rig.params.data() + rig.layout.size());
  const auto exact = test::scalar_loss(model, rig.layout, params, batch, kSeed);
  constexpr double kStep = 1e-6;
  REQUIRE(exact.margin > 4 * kStep);
  CHECK(loss == Approx(exact.mean).epsilon(1e-5));

  for (const Parameter& parameter : rig.layout.parameters()) {
    INFO(parameter.name);
    const std::int64_t count = parameter.place.count;
    const std::int64_t stride = std::max<std::int64_t>(1, count / 40);
    std::vector<double> wanted;
    double largest = 0;
    for (std::int64_t i = 0; i < count; i += stride) {
      double& coordinate = params[static_cast<std::size_t>(parameter.place.offset + i)];
      const double before = coordinate;
      coordinate = before + kStep;
      const double above = test::scalar_loss(model, rig.layout, params, batch, kSeed).mean;
      coordinate = before - kStep;
      const double below = test::scalar_loss(model, rig.layout, params, batch, kSeed).mean;
      coordinate = before;
      wanted.push_back((above - below) / (2 * kStep));
      largest = std::max(largest, std::abs(wanted.back()));
    }
    REQUIRE(largest > 1e-4);
    const float* grad = rig.grads.at(parameter.place);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      INFO("element " << static_cast<std::int64_t>(i) * stride);
      CHECK(std::abs(grad[static_cast<std::int64_t>(i) * stride] - wanted[i]) < 1e-4 * largest);
    }
  }
}

void check_gradients(const Sequential& model, const Batch& batch, std::int64_t block) {
  for (const bool fuse : {true, false}) check_gradients(model, batch, block, fuse);
}

}  // namespace

TEST_CASE("the gradient of a linear model is right", "[layers]") {
  const Sequential model{Linear{.in = 5, .out = 3}};
  check_gradients(model, make_batch({5}, 1, 3), 1);
  check_gradients(model, make_batch({5}, 20, 3), 16);
}

TEST_CASE("the gradient of the article's kind of net is right", "[layers]") {
  const Sequential model{Conv2d{.in = 1, .out = 3, .kernel = 3, .padding = same},
                         MaxPool2d{.kernel = 2, .padding = same},
                         Conv2d{.in = 3, .out = 2, .kernel = 3, .padding = same},
                         MaxPool2d{.kernel = 2, .padding = same},
                         Flatten{},
                         Linear{.in = 2 * 2 * 2, .out = 4}};
  check_gradients(model, make_batch({1, 7, 5}, 1, 4), 1);
  check_gradients(model, make_batch({1, 7, 5}, 5, 4), 16);
}

TEST_CASE("the gradient of convolutions computed with their pooling is right", "[layers]") {
  for (const bool biased : {true, false}) {
    const Sequential model{Conv2d{.in = 2, .out = 7, .kernel = 3, .padding = same, .bias = biased},
                           ReLU{},
                           MaxPool2d{.kernel = 2},
                           Conv2d{.in = 7, .out = 6, .kernel = 3, .padding = same, .bias = biased},
                           MaxPool2d{.kernel = 2},
                           Flatten{},
                           Linear{.in = 6 * 2 * 2, .out = 4}};
    const Rig fused(model, {2, 8, 8}, {.block = 16, .training = true});
    REQUIRE(fused.plan.describe().find("conv_1+relu+pool_1") != std::string::npos);
    REQUIRE(fused.plan.describe().find("conv_2+pool_2") != std::string::npos);
    check_gradients(model, make_batch({2, 8, 8}, 5, 4), 16);
  }
}

TEST_CASE("the gradient through relu, strides, even kernels and no biases is right", "[layers]") {
  const Sequential model{
      Conv2d{.in = 2, .out = 4, .kernel = {2, 4}, .stride = {1, 2}, .padding = same, .bias = false},
      ReLU{},
      MaxPool2d{.kernel = 3, .stride = 2},
      Conv2d{.in = 4, .out = 3, .kernel = 2, .padding = {1, 0}},
      ReLU{},
      Flatten{},
      Linear{.in = 3 * 4 * 1, .out = 6},
      ReLU{},
      Linear{.in = 6, .out = 3, .bias = false}};
  check_gradients(model, make_batch({2, 7, 9}, 6, 3), 16);
}

TEST_CASE("the gradient through dropout is right, in place and not", "[layers]") {
  const Sequential model{Dropout{.rate = 0.2F},
                         Linear{.in = 12, .out = 10},
                         Dropout{.rate = 0.3F},
                         ReLU{},
                         Dropout{.rate = 0.5F},
                         Linear{.in = 10, .out = 10},
                         ReLU{},
                         ReLU{},
                         Dropout{.rate = 0.1F},
                         Linear{.in = 10, .out = 4}};
  check_gradients(model, make_batch({12}, 18, 4), 32);
  check_gradients(model, make_batch({12}, 18, 4), 16);
}

TEST_CASE("the gradient of soft targets is right", "[layers]") {
  check_gradients({Flatten{}, Linear{.in = 6, .out = 5}, ReLU{}, Linear{.in = 5, .out = 3}},
                  make_batch({2, 1, 3}, 17, 3, true), 16);
}

TEST_CASE("the gradient through layers that change nothing at either end is right", "[layers]") {
  check_gradients(
      {ReLU{}, Flatten{}, ReLU{}, Linear{.in = 6, .out = 3}, Flatten{}, Dropout{.rate = 0.4F}},
      make_batch({1, 2, 3}, 9, 3), 16);
}

TEST_CASE("blocks that accumulate give the gradient of the whole", "[layers]") {
  const Batch batch = make_batch({1, 28, 28}, 43, 10);
  Rig whole(zoo::article(), batch.sample, {.block = 48, .training = true});
  Rig parts(zoo::article(), batch.sample, {.block = 16, .training = true});
  CHECK(whole.run(batch) == Approx(parts.run(batch)).epsilon(1e-6));
  const std::vector<float> a = whole.gradients();
  const std::vector<float> b = parts.gradients();
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(a[i] - b[i], 2);
    norm += std::pow(a[i], 2);
  }
  CHECK(std::sqrt(difference / norm) < 1e-6);
}

TEST_CASE("places without a sample add nothing, whatever the weights make of zeros", "[layers]") {
  const Batch batch = make_batch({1, 28, 28}, 5, 10);
  Rig tight(zoo::lenet5(), batch.sample, {.block = 16, .training = true});
  Rig roomy(zoo::lenet5(), batch.sample, {.block = 64, .training = true});
  CHECK(tight.run(batch) == Approx(roomy.run(batch)).epsilon(1e-6));
  const std::vector<float> a = tight.gradients();
  const std::vector<float> b = roomy.gradients();
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::abs(a[i] - b[i]) > 1e-6F) FAIL("element " << i << ": " << a[i] << " and " << b[i]);
  }
  for (std::int64_t i = 5; i < 64; ++i) {
    REQUIRE(roomy.plan.losses()[i] == 0.0F);
    REQUIRE(roomy.plan.correct()[i] == 0.0F);
  }
}

TEST_CASE("a block without any sample leaves a gradient of zeros", "[layers]") {
  const Batch batch = make_batch({1, 28, 28}, 5, 10);
  Rig rig(zoo::article(), batch.sample, {.block = 16, .training = true});
  rig.gather_block(batch, 16);
  rig.plan.forward(rig.context, &rig.state);
  rig.plan.loss(rig.context, &rig.state);
  for (int layer = rig.plan.layers() - 1; layer >= 0; --layer) {
    rig.plan.backward(rig.context, &rig.state, layer, true);
  }
  for (const float g : rig.gradients()) REQUIRE(g == 0.0F);
}
