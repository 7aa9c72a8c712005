// The one exception of the translator, and how its messages are put together.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace cusim::ptx {

/// An input that cannot be translated. The message names the file, the kernel or the instruction.
class TranslationError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Concatenates its arguments as text: `throw TranslationError(message("no kernel ", name))`.
template <class... Parts>
std::string message(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  return text.str();
}

}  // namespace cusim::ptx
