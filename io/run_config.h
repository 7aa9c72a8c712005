// What a run's config.json says, for those who use its weights.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace lockstep {

/// Texts by their key; for each the values that are legal, or none where every text is.
using LegalTexts = std::map<std::string, std::vector<std::string>>;

/// The texts of the keys `wanted` in the configuration that `path` is, or with `inside` has under
/// that key, as a checkpoint's manifest does; what is not there is left out, and a missing file has
/// nothing. Throws IoError, naming the key, for what is no text or not legal, and
/// for a file that is no JSON object, nests deeper or is larger than a configuration.
[[nodiscard]] std::map<std::string, std::string> read_run_config(const std::filesystem::path& path,
                                                                 const LegalTexts& wanted,
                                                                 const std::string& inside = {});

}  // namespace lockstep
