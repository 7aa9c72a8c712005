#include "lockstep/io/weights.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/printable.h"
#include "lockstep/io/files.h"
#include "lockstep/io/safetensors.h"

namespace lockstep {

namespace {

/// "conv_1.weight, conv_1.bias, ..."
std::string names_of(const std::vector<Parameter>& parameters) {
  std::string text;
  for (const Parameter& parameter : parameters) text += (text.empty() ? "" : ", ") + parameter.name;
  return text;
}

SafetensorsBytes file_of(const Model& model, const std::map<std::string, std::string>& metadata) {
  std::map<std::string, std::string> all = weights_metadata();
  all.insert(metadata.begin(), metadata.end());
  std::vector<TensorToWrite> tensors;
  for (const Parameter& parameter : model.layout().parameters()) {
    tensors.push_back(
        {parameter.name, parameter.spec.shape, model.arena().data() + parameter.place.offset});
  }
  return safetensors_bytes(tensors, all);
}

}  // namespace

void save_weights(const Model& model, const std::filesystem::path& path,
                  const std::map<std::string, std::string>& metadata) {
  const SafetensorsBytes bytes = file_of(model, metadata);
  write_file(path, bytes.parts());
}

std::string weights_bytes(const Model& model, const std::map<std::string, std::string>& metadata) {
  const SafetensorsBytes bytes = file_of(model, metadata);
  std::string all;
  for (const std::string_view part : bytes.parts()) all += part;
  return all;
}

std::map<std::string, std::string> read_weights_metadata(const std::filesystem::path& path) {
  return SafetensorsFile(path).metadata();
}

void load_weights(Model& model, const std::filesystem::path& path) {
  const SafetensorsFile file(path);
  const std::vector<Parameter>& parameters = model.layout().parameters();
  for (const TensorEntry& entry : file.entries()) {
    const bool known = std::any_of(parameters.begin(), parameters.end(),
                                   [&](const Parameter& p) { return p.name == entry.name; });
    if (!known) {
      throw IoError(message(path.string(), ": tensor '", printable(entry.name),
                            "' is not in the model, which has ", names_of(parameters),
                            "; are these another model's weights?"));
    }
  }
  std::vector<float> arena = model.arena();
  for (const Parameter& parameter : parameters) {
    const auto entry = std::find_if(file.entries().begin(), file.entries().end(),
                                    [&](const TensorEntry& e) { return e.name == parameter.name; });
    if (entry == file.entries().end()) {
      throw IoError(message(path.string(), ": tensor '", parameter.name,
                            "' of the model is missing; are these another model's weights?"));
    }
    if (!entry->has_shape(parameter.spec.shape)) {
      throw IoError(message(path.string(), ": tensor '", parameter.name, "' has the shape ",
                            entry->shape_text(), ", the model's is ", parameter.spec.shape,
                            "; are these another model's weights?"));
    }
    file.read(*entry, arena.data() + parameter.place.offset);
  }
  model.set_arena(std::move(arena));
}

}  // namespace lockstep
