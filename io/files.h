// Files that are either whole or not there.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>

namespace lockstep {

/// Writes the parts one after another to `path`: into a temporary file in the same folder, synced,
/// then renamed, then the folder synced. Until the rename what was there before stays; on an error
/// the temporary file is removed. Throws IoError with path and reason.
void write_file(const std::filesystem::path& path, std::span<const std::string_view> parts);

/// The same for one text.
void write_text_file(const std::filesystem::path& path, std::string_view text);

}  // namespace lockstep
