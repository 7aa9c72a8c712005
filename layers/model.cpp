#include "lockstep/layers/model.h"

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/kernels/convert.h"
#include "lockstep/layers/plan.h"

namespace lockstep {

namespace {

const Parameter& find(const ParameterLayout& layout, const std::string& name) {
  std::string names;
  for (const Parameter& parameter : layout.parameters()) {
    if (parameter.name == name) return parameter;
    names += (names.empty() ? "" : ", ") + parameter.name;
  }
  throw UsageError(message("model: no parameter '", name, "'; there are: ", names));
}

}  // namespace

Model::Model(Sequential layers, Shape input_sample, std::uint64_t seed)
    : layers_(std::move(layers)), input_sample_(input_sample), layout_(layers_) {
  (void)layers_.shapes(input_sample_);
  arena_.resize(static_cast<std::size_t>(layout_.size()));
  initialize_parameters(layout_, seed, arena_.data());
}

Tensor Model::parameter(const std::string& name) const {
  const Parameter& found = find(layout_, name);
  Tensor value(found.spec.shape);
  std::copy_n(arena_.data() + found.place.offset, found.place.count, value.data());
  return value;
}

void Model::set_parameter(const std::string& name, const Tensor& value) {
  const Parameter& found = find(layout_, name);
  if (value.shape() != found.spec.shape) {
    throw ShapeError(
        message("model: ", name, " is ", found.spec.shape, ", got a value of ", value.shape()));
  }
  std::copy_n(value.data(), found.place.count, arena_.data() + found.place.offset);
}

void Model::set_arena(std::vector<float> arena) {
  if (arena.size() != arena_.size()) {
    throw ShapeError(message("model: an arena of ", arena.size(), " floats, want ", arena_.size()));
  }
  arena_ = std::move(arena);
}

Tensor Model::predict(const Tensor& samples) const {
  const Shape& shape = samples.shape();
  if (shape.rank() == 0 || shape.without_first() != input_sample_) {
    throw ShapeError(message("model: samples are ", shape, ", want ",
                             input_sample_.with_first(shape.rank() == 0 ? 1 : shape[0]),
                             ": a batch of ", input_sample_));
  }
  const std::int64_t count = shape[0];
  Context context{Device{}};
  const Arena params(context.device(), layout_.size(), "the parameters");
  std::copy(arena_.begin(), arena_.end(), params.data());
  Plan plan(context, layers_, layout_, input_sample_,
            {.block = block_samples(context, layers_, input_sample_, count, true)}, params.data(),
            nullptr);

  const std::int64_t classes = plan.logits().shape[1];
  Tensor logits(Shape{count, classes});
  for (std::int64_t first = 0; first < count; first += plan.block()) {
    const std::int64_t here = std::min(plan.block(), count - first);
    convert_layout(context,
                   {samples.data() + first * input_sample_.count(), input_sample_.with_first(here)},
                   plan.input().x);
    plan.forward(context, nullptr);
    convert_layout(context, plan.logits(), {logits.data() + first * classes, {here, classes}});
  }
  return logits;
}

std::vector<int> Model::predict_classes(const Tensor& samples) const {
  const Tensor logits = predict(samples);
  const std::int64_t classes = logits.shape()[1];
  std::vector<int> winners;
  for (std::int64_t i = 0; i < logits.shape()[0]; ++i) {
    const float* row = logits.data() + i * classes;
    winners.push_back(static_cast<int>(std::max_element(row, row + classes) - row));
  }
  return winners;
}

}  // namespace lockstep
