// Running another program and reading what it prints.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace lockstep::apps {

struct ChildResult {
  int code = 0;     ///< exit code, or 128 + the signal that ended it; 127: it cannot be run
  std::string out;  ///< stdout
  std::string err;  ///< stderr
};

/// A variable of the environment and its value.
using Setting = std::pair<std::string, std::string>;

/// The program command[0], looked up in PATH where it has no slash, with the environment of this
/// process and `settings` on top. Throws IoError when there can be no more processes.
[[nodiscard]] ChildResult run_child(const std::vector<std::string>& command,
                                    const std::vector<Setting>& settings = {});

/// The last line of `text` that is not empty; empty when there is none.
[[nodiscard]] std::string last_line(const std::string& text);

/// The program that runs, with its folder.
[[nodiscard]] std::string own_program();

/// Bytes of memory that this process held at its peak; 0 where the system does not say.
[[nodiscard]] double peak_memory();

}  // namespace lockstep::apps
