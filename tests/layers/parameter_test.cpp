// Where parameters lie and how they start.
#include "lockstep/layers/parameter.h"

#include <cmath>
#include <numeric>

#include "lockstep/core/step_state.h"
#include "lockstep/layers/zoo.h"

#include "support/catch.h"
#include "support/throws.h"

using namespace lockstep;
using lockstep::test::contains;
using lockstep::test::message_of;

namespace {

struct Moments {
  double mean = 0;
  double variance = 0;
  double smallest = 1e30;
  double largest = -1e30;
};

/// Of the weight of one Linear 300 -> 200 that starts as `initializer`.
Moments moments(const Initializer& initializer, std::uint64_t seed = 1) {
  const ParameterLayout layout{
      Sequential{Linear{.in = 300, .out = 200, .weight_init = initializer}}};
  std::vector<float> arena(static_cast<std::size_t>(layout.size()), 7.0F);
  initialize_parameters(layout, seed, arena.data());
  const Place place = layout.parameters()[0].place;
  Moments all;
  for (std::int64_t i = 0; i < place.count; ++i) {
    const double v = arena[static_cast<std::size_t>(place.offset + i)];
    all.mean += v / static_cast<double>(place.count);
    all.variance += v * v / static_cast<double>(place.count);
    all.smallest = std::min(all.smallest, v);
    all.largest = std::max(all.largest, v);
  }
  return all;
}

std::vector<float> first_values(const Sequential& model, std::uint64_t seed,
                                const std::string& name) {
  const ParameterLayout layout(model);
  std::vector<float> arena(static_cast<std::size_t>(layout.size()));
  initialize_parameters(layout, seed, arena.data());
  for (const Parameter& parameter : layout.parameters()) {
    if (parameter.name == name) {
      const float* first = arena.data() + parameter.place.offset;
      return {first, first + std::min<std::int64_t>(6, parameter.place.count)};
    }
  }
  FAIL("no parameter " << name);
  return {};
}

}  // namespace

TEST_CASE("the layout lists parameters in order and lays layers in reverse", "[layers]") {
  const ParameterLayout layout(zoo::article());
  const std::vector<Parameter>& all = layout.parameters();
  REQUIRE(all.size() == 6);
  const std::vector<std::string> names{"conv_1.weight", "conv_1.bias", "conv_2.weight",
                                       "conv_2.bias",   "fc.weight",   "fc.bias"};
  for (std::size_t i = 0; i < names.size(); ++i) CHECK(all[i].name == names[i]);
  CHECK(all[0].spec.shape == Shape{8, 1, 3, 3});
  CHECK(all[4].spec.shape == Shape{10, 784});
  CHECK(all[4].layer == 5);
  CHECK(all[4].place.offset == 0);
  CHECK(all[5].place.offset == 7840);
  CHECK(all[2].place.offset == 7856);
  CHECK(all[3].place.offset == 7856 + 1152);
  CHECK(all[0].place.offset == 9024);
  CHECK(all[1].place.offset == 9024 + 80);
  CHECK(layout.size() == 9120);
  CHECK(layout.gradient_size() == 9120 + kTailFloats);
  CHECK(layout.parameter_count() == 9098);
  CHECK(layout.of_layer(2).size() == 2);
  CHECK(layout.of_layer(2)[1].name == "conv_2.bias");
  CHECK(layout.of_layer(1).empty());
}

TEST_CASE("only weights decay", "[layers]") {
  const ParameterLayout layout(zoo::lenet5());
  for (const Parameter& parameter : layout.parameters()) {
    CHECK(parameter.spec.decays == contains(parameter.name, "weight"));
  }
}

TEST_CASE("fans are those of the article", "[layers]") {
  const std::vector<ParameterSpec> conv = Conv2d{.in = 8, .out = 16, .kernel = {3, 5}}.parameters();
  CHECK(conv[0].fan_in == 8 * 15);
  CHECK(conv[0].fan_out == 16 * 15);
  CHECK(conv[1].fan_in == 16);
  CHECK(conv[1].fan_out == 16);
  const std::vector<ParameterSpec> fc = Linear{.in = 784, .out = 10}.parameters();
  CHECK(fc[0].fan_in == 784);
  CHECK(fc[0].fan_out == 10);
  CHECK(fc[1].fan_in == 10);
}

TEST_CASE("initialisers keep their limits and moments", "[layers]") {
  const double limit = std::sqrt(6.0 / 500);
  const Moments glorot = moments(glorot_uniform);
  CHECK(std::abs(glorot.mean) < 0.01 * limit);
  CHECK(glorot.variance == Approx(limit * limit / 3).epsilon(0.02));
  CHECK(glorot.smallest >= -limit);
  CHECK(glorot.smallest < -0.999 * limit);
  CHECK(glorot.largest <= limit);
  CHECK(glorot.largest > 0.999 * limit);

  const Moments he = moments(he_normal);
  CHECK(std::abs(he.mean) < 0.02 * std::sqrt(2.0 / 300));
  CHECK(he.variance == Approx(2.0 / 300).epsilon(0.02));
  CHECK(he.largest > 3.5 * std::sqrt(2.0 / 300));

  CHECK(moments(normal(0.5F)).variance == Approx(0.25).epsilon(0.02));
  CHECK(moments(zero).variance == 0);
  CHECK(moments(glorot_uniform, 2).mean != glorot.mean);
}

TEST_CASE("biases of the article lie within sqrt(3 / n)", "[layers]") {
  const ParameterLayout layout(zoo::article());
  std::vector<float> arena(static_cast<std::size_t>(layout.size()));
  double largest = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    initialize_parameters(layout, seed, arena.data());
    const Place bias = layout.of_layer(5)[1].place;
    for (std::int64_t i = 0; i < bias.count; ++i) {
      largest =
          std::max(largest, std::abs(double{arena[static_cast<std::size_t>(bias.offset + i)]}));
    }
  }
  CHECK(largest <= std::sqrt(0.3));
  CHECK(largest > 0.97 * std::sqrt(0.3));
}

TEST_CASE("neighbouring normal numbers do not hang together", "[layers]") {
  const ParameterLayout layout{Sequential{Linear{.in = 200, .out = 200, .weight_init = normal(1)}}};
  std::vector<float> arena(static_cast<std::size_t>(layout.size()));
  initialize_parameters(layout, 3, arena.data());
  const float* w = arena.data() + layout.parameters()[0].place.offset;
  for (const int lag : {1, 2, 3, 4}) {
    double product = 0;
    for (int i = 0; i + lag < 40000; ++i) product += double{w[i]} * w[i + lag];
    CHECK(std::abs(product / 40000) < 0.02);
  }
}

TEST_CASE("padding starts as 0", "[layers]") {
  const ParameterLayout layout(zoo::article());
  std::vector<float> arena(static_cast<std::size_t>(layout.size()), 7.0F);
  initialize_parameters(layout, 1, arena.data());
  for (const Parameter& parameter : layout.parameters()) {
    std::fill_n(arena.begin() + parameter.place.offset, parameter.place.count, 0.0F);
  }
  CHECK(arena == std::vector<float>(arena.size(), 0.0F));
}

TEST_CASE("parameter names that clash and missing fans are refused", "[layers]") {
  struct Twice : Linear {
    std::vector<ParameterSpec> parameters() const {
      return {{"weight", {1}, zero}, {"weight", {1}, zero}};
    }
  };
  CHECK(message_of<UsageError>([] {
          (void)ParameterLayout(Sequential{Twice{}});
        }).rfind("fc: ", 0) == 0);

  struct NoFans : Linear {
    std::vector<ParameterSpec> parameters() const { return {{"weight", {1}, glorot_uniform}}; }
  };
  const ParameterLayout layout{Sequential{NoFans{}}};
  std::vector<float> arena(16);
  CHECK(contains(message_of<UsageError>([&] { initialize_parameters(layout, 0, arena.data()); }),
                 "fc.weight"));
}

// What a seed means must not change unnoticed. Computed apart, by a script with its own Philox.
TEST_CASE("the first values of seed 42 are frozen", "[layers]") {
  const auto check = [](const std::vector<float>& values, const std::vector<float>& frozen) {
    REQUIRE(values.size() == frozen.size());
    for (std::size_t i = 0; i < values.size(); ++i)
      CHECK(values[i] == Approx(frozen[i]).epsilon(1e-5));
  };
  check(first_values(zoo::article(), 42, "conv_1.weight"),
        {0.050104839F, 0.23118935F, -0.25543232F, -0.20920086F, 0.25459295F, -0.22880009F});
  check(first_values(zoo::article(), 42, "fc.bias"),
        {0.094723735F, 0.54514046F, -0.058127447F, 0.1233036F, 0.040707175F, -0.41227611F});
  check(first_values(zoo::lenet5(), 42, "fc_1.weight"),
        {0.056733526F, -0.048888054F, 0.040023064F, -0.15207765F, -0.090733521F, -0.028052586F});
}
