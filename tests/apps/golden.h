// Comparing text with a file under tests/apps/golden.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "support/catch.h"

namespace lockstep::test {

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Fails unless `text` is the content of golden/`name`. With LOCKSTEP_UPDATE_GOLDEN set the file is
/// written instead, and the test fails too: nobody can update by accident.
inline void check_golden(const std::string& name, const std::string& text) {
  const std::filesystem::path path = std::filesystem::path(LOCKSTEP_GOLDEN_DIR) / name;
  if (std::getenv("LOCKSTEP_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path, std::ios::binary) << text;
    FAIL_CHECK(path.string() << " has been written; look at the difference and run without "
                                "LOCKSTEP_UPDATE_GOLDEN");
    return;
  }
  INFO("golden file " << path.string());
  CHECK(text == read_text(path));
}

}  // namespace lockstep::test
