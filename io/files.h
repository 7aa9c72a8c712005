// Files and folders that are either whole or not there.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace lockstep {

/// Writes the parts one after another to `path`: into a temporary file in the same folder, synced,
/// then renamed, then the folder synced. Until the rename what was there before stays; on an error
/// the temporary file is removed. Throws IoError with path and reason.
void write_file(const std::filesystem::path& path, std::span<const std::string_view> parts);

/// The same for one text.
void write_text_file(const std::filesystem::path& path, std::string_view text);

/// The whole of a regular file. Throws IoError with path and reason.
[[nodiscard]] std::string read_file(const std::filesystem::path& path);

/// A folder that is filled under a temporary name and appears whole. Goes away with all that is in
/// it unless it was put in its place.
class NewFolder {
 public:
  /// Makes the temporary folder beside `path`. Throws IoError, also when `path` is there.
  explicit NewFolder(std::filesystem::path path);
  ~NewFolder();
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  /// Writes a file that is not there yet, and syncs it. Throws IoError.
  void write(std::string_view name, std::span<const std::string_view> parts);
  /// Syncs the folder, renames it to its path and syncs the folder that it is in. Throws IoError.
  void put_in_place();

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;  ///< empty once it is in its place
};

/// Removes a folder with all that is in it; while that goes on it has a temporary name already, so
/// that nobody finds half of it. Throws IoError.
void remove_folder(const std::filesystem::path& folder);

/// Removes what processes that ended in the middle have left in `folder`: files and folders with
/// the names that this header gives for a time. Nobody else may be writing there. Throws IoError.
void remove_leftovers(const std::filesystem::path& folder);

/// Throws IoError unless files and folders can be made, renamed, replaced and removed in `folder`:
/// before there is anything to lose. Then it has removed what it made, and leftovers. Nobody else
/// may be writing there.
void check_writable(const std::filesystem::path& folder);

}  // namespace lockstep
