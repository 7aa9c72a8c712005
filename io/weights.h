// Weights as safetensors files, which other frameworks read.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "lockstep/layers/model.h"

namespace lockstep {

/// Writes the model's parameters to `path` (safetensors, F32, names as "conv_1.weight", KCRS
/// filters, (O, D) linear weights with channel-first features) through a temporary name, synced and
/// renamed: the old file is there until the new one is whole. `metadata` goes into the header's
/// __metadata__ beside ours (format, lockstep_version, flattening), which cannot be changed. Throws
/// IoError.
void save_weights(const Model& model, const std::filesystem::path& path,
                  const std::map<std::string, std::string>& metadata = {});

/// The bytes of the file that save_weights would write.
[[nodiscard]] std::string weights_bytes(const Model& model,
                                        const std::map<std::string, std::string>& metadata = {});

/// The texts in __metadata__ of the weights file `path`, as its writer put them there. Throws
/// IoError for a file that is no whole safetensors file.
[[nodiscard]] std::map<std::string, std::string> read_weights_metadata(
    const std::filesystem::path& path);

/// Reads parameters into `model`. The file must have exactly the model's names and shapes in F32;
/// otherwise IoError names the tensor, and the model is unchanged. Sizes in the file are believed
/// only as far as its length goes.
void load_weights(Model& model, const std::filesystem::path& path);

}  // namespace lockstep
