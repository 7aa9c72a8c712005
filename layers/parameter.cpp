#include "lockstep/layers/parameter.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>

#include "lockstep/core/error.h"
#include "lockstep/core/random.h"
#include "lockstep/core/step_state.h"
#include "lockstep/layers/name_errors.h"
#include "lockstep/layers/sequential.h"

namespace lockstep {

ParameterLayout::ParameterLayout(const Sequential& model) {
  std::set<std::string> names;
  for (int layer = 0; layer < model.size(); ++layer) {
    const auto specs =
        naming_layer(model.name(layer), [&] { return model.layer(layer).parameters(); });
    for (const ParameterSpec& spec : specs) {
      const std::string name = model.name(layer) + "." + spec.name;
      if (spec.name.empty() || !names.insert(name).second) {
        throw UsageError(message(model.name(layer), ": parameter name '", spec.name,
                                 "' is empty or there twice; each parameter of a layer needs a "
                                 "name of its own"));
      }
      parameters_.push_back({name, layer, spec, {}});
    }
  }
  ArenaLayout arena;
  for (int layer = model.size() - 1; layer >= 0; --layer) {
    for (Parameter& parameter : parameters_) {
      if (parameter.layer == layer) parameter.place = arena.add(parameter.spec.shape.count());
    }
  }
  size_ = arena.size();
}

std::vector<Parameter> ParameterLayout::of_layer(int layer) const {
  std::vector<Parameter> found;
  std::copy_if(parameters_.begin(), parameters_.end(), std::back_inserter(found),
               [layer](const Parameter& parameter) { return parameter.layer == layer; });
  return found;
}

std::int64_t ParameterLayout::gradient_size() const {
  return size_ + kTailFloats;
}

std::int64_t ParameterLayout::parameter_count() const {
  std::int64_t count = 0;
  for (const Parameter& parameter : parameters_) count += parameter.place.count;
  return count;
}

namespace {

/// Random words of one parameter, by element.
class Words {
 public:
  Words(std::uint64_t seed, std::uint32_t number)
      : key_{.seed = seed, .purpose = RandomPurpose::weights, .item = number, .epoch = 0} {}
  [[nodiscard]] PhiloxBlock around(std::int64_t element) const {
    return random_block(key_, 0, static_cast<std::uint32_t>(element / 4));
  }

 private:
  RandomKey key_;
};

void fill_uniform(const Words& words, double limit, float* values, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float unit = uniform_float(words.around(i)[static_cast<std::size_t>(i % 4)]);
    values[i] = static_cast<float>(limit * (2.0 * unit - 1.0));
  }
}

/// Box and Muller, "A note on the generation of random normal deviates" (1958): words 0 and 1 of a
/// block make the elements 0 and 1 of four, words 2 and 3 the others.
void fill_normal(const Words& words, double stddev, float* values, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const PhiloxBlock block = words.around(i);
    const std::size_t pair = i % 4 < 2 ? 0 : 2;
    const double radius = std::sqrt(-2.0 * std::log((block[pair] + 0.5) * 0x1p-32));
    const double angle = 2.0 * std::numbers::pi * (block[pair + 1] * 0x1p-32);
    const double unit = radius * (i % 2 == 0 ? std::cos(angle) : std::sin(angle));
    values[i] = static_cast<float>(stddev * unit);
  }
}

void initialize(const Parameter& parameter, const Words& words, float* values) {
  const Initializer& initializer = parameter.spec.initializer;
  const auto fan_in = static_cast<double>(parameter.spec.fan_in);
  const auto fan_out = static_cast<double>(parameter.spec.fan_out);
  const std::int64_t count = parameter.place.count;
  const auto require_fans = [&](bool positive) {
    if (positive) return;
    throw UsageError(message(parameter.name, ": fan_in ", parameter.spec.fan_in, ", fan_out ",
                             parameter.spec.fan_out,
                             " give no scale for its initialiser; its layer must state both"));
  };
  switch (initializer.kind) {
    case Initializer::Kind::zero:
      break;
    case Initializer::Kind::glorot_uniform:
      require_fans(fan_in >= 0 && fan_out >= 0 && fan_in + fan_out > 0);
      fill_uniform(words, std::sqrt(6.0 / (fan_in + fan_out)), values, count);
      break;
    case Initializer::Kind::he_normal:
      require_fans(fan_in > 0);
      fill_normal(words, std::sqrt(2.0 / fan_in), values, count);
      break;
    case Initializer::Kind::normal:
      fill_normal(words, initializer.stddev, values, count);
      break;
  }
}

}  // namespace

void initialize_parameters(const ParameterLayout& layout, std::uint64_t seed, float* arena) {
  std::fill_n(arena, layout.size(), 0.0F);
  std::uint32_t number = 0;
  for (const Parameter& parameter : layout.parameters()) {
    initialize(parameter, Words(seed, number), arena + parameter.place.offset);
    ++number;
  }
}

}  // namespace lockstep
