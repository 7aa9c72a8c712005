// What a run's config.json says, for those who use its weights.
#pragma once

#include <cstdint>
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

/// What a run was told to do.
struct RunOptions {
  std::map<std::string, std::string> options;  ///< "--lr": "0.01"; flags with an empty text
  std::int64_t batch_size = 0;
};

/// The options in the file `path`, a run's config.json. Throws IoError, as read_run_config and
/// where one is no text or the batch size no number above 0.
[[nodiscard]] RunOptions read_run_options(const std::filesystem::path& path);

/// The same out of a configuration that has been read: `text`, which messages name `path`.
[[nodiscard]] RunOptions parse_run_options(const std::string& text,
                                           const std::filesystem::path& path);

}  // namespace lockstep
