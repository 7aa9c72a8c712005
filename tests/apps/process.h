// Running our programs as users do: another process, its output, its exit code.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace lockstep::test {

struct ProcessResult {
  int code = 0;     ///< exit code, or 128 + the signal that ended it
  std::string out;  ///< stdout
  std::string err;  ///< stderr; with a terminal everything written to it
};

struct ProcessOptions {
  std::filesystem::path folder{};  ///< to run in; empty: here
  bool terminal = false;           ///< stderr is a pseudo-terminal
  int ignored = 0;                 ///< a signal that the program ignores from its start on
  /// Called for every piece of stdout with all of it so far and the process's id.
  std::function<void(const std::string& out, int pid)> on_output{};
};

/// Runs the program `name` that lies beside this test executable.
ProcessResult run_process(const std::string& name, const std::vector<std::string>& arguments,
                          const ProcessOptions& options = {});

/// A folder of its own among the temporary files, gone with the object.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::string operator/(const std::string& name) const {
    return (path_ / name).string();
  }

 private:
  std::filesystem::path path_;
};

}  // namespace lockstep::test
