// Options of one command: parsing by CLI11, values checked with messages that say what is legal,
// and a help text that does not depend on CLI11's version.
#pragma once

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include <CLI/CLI.hpp>

#include "lockstep/core/number_text.h"

#include "apps/options.h"
#include "apps/program.h"

namespace lockstep::apps {

/// Says what is wrong with an option's text; empty when nothing is.
using Check = std::function<std::string(const std::string&)>;

/// A whole number from `min` to `max`.
[[nodiscard]] Check whole_number(std::int64_t min, std::int64_t max);
/// Any seed: 0 to 2^64 - 1.
[[nodiscard]] Check seed_number();
/// A finite number from `min` to `max`; with `open`, `min` itself is not allowed.
[[nodiscard]] Check real_number(double min, double max, bool open = false);
[[nodiscard]] Check one_of(std::vector<std::string> choices);
/// Anything but an empty text, which a script gives for a variable that is not set.
[[nodiscard]] Check some_text();
/// Whole numbers from 1 to `max`, apart by commas, no two the same.
[[nodiscard]] Check number_list(int max);
/// The numbers of a text that number_list accepts.
[[nodiscard]] std::vector<int> parse_numbers(const std::string& text);

/// The value of an option as it would be given; nothing for one that is not set.
[[nodiscard]] inline std::string argument_text(const std::string& value) {
  return value;
}
[[nodiscard]] inline std::string argument_text(const std::filesystem::path& value) {
  return value.string();
}
template <class T>
requires std::integral<T> || std::floating_point<T>
[[nodiscard]] std::string argument_text(T value) {
  return number_text(value);
}
template <class T>
[[nodiscard]] std::string argument_text(const std::optional<T>& value) {
  return value ? argument_text(*value) : "";
}
template <class T>
[[nodiscard]] std::string argument_text(const std::vector<T>& values) {
  std::string text;
  for (const T& value : values) text += (text.empty() ? "" : ",") + argument_text(value);
  return text;
}

class CommandLine {
 public:
  /// `usage` is the first line of the help, behind "usage: "; `summary` the paragraph below it.
  CommandLine(const std::string& usage, const std::string& summary);

  /// Options added from now on stand under `title` in the help.
  void group(const std::string& title);
  /// An option (or with a name without dashes a positional) that takes `argument`. Paths without a
  /// check are some_text.
  template <class T>
  CLI::Option* value(const std::string& name, T& target, const std::string& argument,
                     const std::string& help, Check check = {}) {
    if constexpr (std::is_same_v<T, std::filesystem::path>) {
      if (!check) check = some_text();
    }
    CLI::Option* option = app_.add_option(name, target);
    if (check)
      option->check(CLI::Validator([check](std::string& text) { return check(text); }, ""));
    add_help(name, argument, help);
    settings_.push_back({name, option, [&target] { return argument_text(target); }, check});
    return option;
  }
  CLI::Option* flag(const std::string& name, bool& target, const std::string& help);
  /// A paragraph at the end of the help.
  void epilog(const std::string& text);

  /// Parses the arguments of `program`. With --help or --version among them returns the text to
  /// print instead.
  /// Throws UsageError.
  [[nodiscard]] std::optional<std::string> parse(const Arguments& arguments,
                                                 const std::string& program);
  [[nodiscard]] std::string help() const;
  /// After parse: every option that was given or has a value of its own, as it would be given.
  /// Flags that are set have no text.
  [[nodiscard]] Settings settings() const;
  /// After parse: the names of those that were given.
  [[nodiscard]] std::vector<std::string> given() const;

 private:
  struct Setting {
    std::string name;
    CLI::Option* option;
    std::function<std::string()> text;  ///< none: a flag
    Check check;
  };

  void add_help(const std::string& name, const std::string& argument, const std::string& help);

  CLI::App app_;
  std::string usage_;
  std::string options_;
  std::string epilog_;
  std::vector<Setting> settings_;
};

/// The paragraph on exit codes.
[[nodiscard]] std::string exit_code_help();

/// What --version prints: the program's version, instruction sets, backends.
[[nodiscard]] std::string version_text(const std::string& program);

}  // namespace lockstep::apps
