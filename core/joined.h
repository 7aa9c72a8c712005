// Lists in messages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// The parts one after another with `separator` between them: "baseline, avx2".
[[nodiscard]] inline std::string joined(const std::vector<std::string>& parts,
                                        std::string_view separator) {
  std::string text;
  for (const std::string& part : parts) {
    if (&part != parts.data()) text += separator;
    text += part;
  }
  return text;
}

}  // namespace lockstep
