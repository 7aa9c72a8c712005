// Text that came out of a file, made fit for a message.
#pragma once

#include <cstddef>
#include <string>

namespace lockstep {

/// At most 100 characters of `text`, and nothing that a terminal would obey.
[[nodiscard]] inline std::string printable(std::string text) {
  constexpr std::size_t kMost = 100;
  if (text.size() > kMost) text = text.substr(0, kMost - 3) + "...";
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text;
}

}  // namespace lockstep
