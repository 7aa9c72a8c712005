// Numbers as the shortest text that reads back to the same number.
#pragma once

#include <charconv>
#include <concepts>
#include <string>

namespace lockstep {

/// "0.9", "1e-05", "nan": as few digits as bring back the same bits, independent of the locale.
template <class T>
requires std::integral<T> || std::floating_point<T>
[[nodiscard]] std::string number_text(T value) {
  char text[64];
  const std::to_chars_result result = std::to_chars(text, text + sizeof text, value);
  return {text, result.ptr};
}

}  // namespace lockstep
