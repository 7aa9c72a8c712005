// Where the files of one training go, with the lock that keeps others out.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string_view>

namespace lockstep {

class Descriptor;

/// A folder of its own for one run; nothing that was there is ever overwritten. It is locked while
/// a copy of this lives: making or opening it a second time is an IoError, in any process.
class RunFolder {
 public:
  /// Makes exactly the folder `path`, its parents too; IoError when it is there and not empty, or
  /// where files cannot be made, renamed and removed in it: then nothing that was made stays. An
  /// empty `path` makes `<root>/<UTC time of now as YYYYMMDD-HHMMSS>`, with "-2", "-3", ... behind
  /// it while that is taken.
  [[nodiscard]] static RunFolder create(
      const std::filesystem::path& path, const std::filesystem::path& root = "runs",
      std::chrono::system_clock::time_point now = std::chrono::system_clock::now());

  /// The folder of a run that is to go on. A link such as runs/latest is followed now. One that got
  /// its name from the time can become the latest, unless something else has the link's name.
  /// IoError when there is no such folder.
  [[nodiscard]] static RunFolder open(const std::filesystem::path& path);

  /// Points the link `latest` beside a folder that got its name from the time at it, once there is
  /// something in it to go on from; does nothing for others and the second time. Throws IoError.
  void become_latest();

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// Path of the file `name` in the folder.
  [[nodiscard]] std::filesystem::path file(std::string_view name) const { return path_ / name; }

 private:
  explicit RunFolder(std::filesystem::path path);

  std::filesystem::path path_;
  std::shared_ptr<Descriptor> lock_;
  std::filesystem::path latest_;  ///< link that is to be pointed here; empty: none
};

}  // namespace lockstep
