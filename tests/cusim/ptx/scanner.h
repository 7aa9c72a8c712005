// Splits PTX text into the pieces that the parser looks at.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cusim::ptx {

/// `text` without comments; line breaks stay.
std::string without_comments(std::string_view text);

std::string_view trim(std::string_view text);

/// Parts between separators that stand outside of all brackets, trimmed; none for blank text.
std::vector<std::string> split(std::string_view text, char separator);

/// Reads from the front of a text.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(trim(text)) {}

  [[nodiscard]] bool done() const { return rest_.empty(); }
  [[nodiscard]] bool starts_with(std::string_view prefix) const {
    return rest_.substr(0, prefix.size()) == prefix;
  }
  /// Passes over `prefix` when it is next.
  bool accept(std::string_view prefix);
  /// Passes over a number.
  /// @throws TranslationError when there is none.
  std::size_t number();
  /// Passes over letters, digits and $ _ %; may be empty.
  std::string_view name();
  /// Passes over what comes before the first of `ends` and returns it trimmed, the end not included
  /// and not passed.
  /// @throws TranslationError when none of them follows.
  std::string_view until(std::string_view ends);
  /// Passes over the rest of the line and returns it.
  std::string_view line();
  /// If a label is next, passes over it with its colon and returns its name, else returns nothing.
  std::string_view label();
  /// Passes over { ... } with all that is nested in it.
  void skip_braces();
  /// The text not yet passed.
  [[nodiscard]] std::string_view rest() const { return rest_; }

 private:
  void advance(std::size_t count);

  std::string_view rest_;
};

}  // namespace cusim::ptx
