#include "lockstep/layers/sequential.h"

#include <algorithm>
#include <map>
#include <set>

#include "lockstep/core/error.h"
#include "lockstep/layers/name_errors.h"
#include "lockstep/layers/text_table.h"

namespace lockstep {

namespace {

void require_legal(const std::string& name, int index) {
  const auto legal = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  if (name.empty() || !std::all_of(name.begin(), name.end(), legal)) {
    throw UsageError(message("sequential: layer ", index, " has the name '", name,
                             "'; use letters, digits and underscores"));
  }
}

std::vector<std::string> names_of(const std::vector<AnyLayer>& layers) {
  if (layers.empty()) throw UsageError("sequential: no layers; a model needs at least one");
  std::map<std::string, int> unnamed;
  for (const AnyLayer& layer : layers) {
    if (layer.given_name().empty()) ++unnamed[layer.kind()];
  }
  std::vector<std::string> names;
  std::map<std::string, int> numbers;
  std::set<std::string> taken;
  for (const AnyLayer& layer : layers) {
    std::string name = layer.given_name();
    const std::string kind = layer.kind();
    if (name.empty()) {
      name = unnamed[kind] == 1 ? kind : kind + "_" + std::to_string(++numbers[kind]);
    }
    require_legal(name, static_cast<int>(names.size()));
    if (!taken.insert(name).second) {
      throw UsageError(
          message("sequential: two layers are called '", name, "'; give one of them another name"));
    }
    names.push_back(std::move(name));
  }
  return names;
}

std::string batch_text(const Shape& sample) {
  std::string text = "(N";
  for (int axis = 0; axis < sample.rank(); ++axis) text += ", " + std::to_string(sample[axis]);
  return text + ")";
}

std::int64_t count_of(const std::vector<ParameterSpec>& specs) {
  std::int64_t count = 0;
  for (const ParameterSpec& spec : specs) count += spec.shape.count();
  return count;
}

}  // namespace

Sequential::Sequential(std::initializer_list<AnyLayer> layers)
    : Sequential(std::vector<AnyLayer>(layers)) {}

Sequential::Sequential(std::vector<AnyLayer> layers)
    : layers_(std::move(layers)), names_(names_of(layers_)) {}

std::vector<Shape> Sequential::shapes(const Shape& input_sample) const {
  std::vector<Shape> shapes;
  Shape shape = input_sample;
  for (int i = 0; i < size(); ++i) {
    shape = naming_layer(name(i), [&] { return layer(i).output_shape(shape); });
    shapes.push_back(shape);
  }
  return shapes;
}

std::string Sequential::describe(const Shape& input_sample) const {
  const std::vector<Shape> outputs = shapes(input_sample);
  std::vector<std::vector<std::string>> rows{{"name", "layer", "output", "parameters"},
                                             {"", "input", batch_text(input_sample), ""}};
  std::int64_t total = 0;
  for (int i = 0; i < size(); ++i) {
    const std::int64_t count =
        naming_layer(name(i), [&] { return count_of(layer(i).parameters()); });
    total += count;
    rows.push_back({name(i), layer(i).summary(), batch_text(outputs[static_cast<std::size_t>(i)]),
                    count == 0 ? "" : std::to_string(count)});
  }
  return text_table(rows, 3) + std::to_string(total) + " parameters\n";
}

}  // namespace lockstep
