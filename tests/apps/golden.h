// Comparing text with a file under tests/apps/golden.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "apps/read_text.h"
#include "support/catch.h"

namespace lockstep::test {

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
