#include "apps/command_line.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>
#include <utility>

#include "lockstep/config.h"
#include "lockstep/core/device.h"
#include "lockstep/core/error.h"
#include "lockstep/core/joined.h"

namespace lockstep::apps {

namespace {

constexpr std::size_t kHelpColumn = 32;
constexpr std::size_t kHelpWidth = 100;

/// The whole of `text` as a T, if it is one.
template <class T>
std::optional<T> parsed(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return {};
  return value;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::stringstream stream(text + separator);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

/// `text` broken into lines of kHelpWidth, all but the first indented by `indent`.
std::string wrapped(const std::string& text, std::size_t indent) {
  std::string lines;
  std::size_t column = indent;
  std::stringstream words(text);
  for (std::string word; words >> word;) {
    if (column > indent && column + 1 + word.size() > kHelpWidth) {
      lines += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      lines += ' ';
      ++column;
    }
    lines += word;
    column += word.size();
  }
  return lines;
}

}  // namespace

Check whole_number(std::int64_t min, std::int64_t max) {
  return [=](const std::string& text) -> std::string {
    const auto value = parsed<std::int64_t>(text);
    if (value && *value >= min && *value <= max) return {};
    return message("'", text, "'; want a whole number from ", min, " to ", max);
  };
}

Check seed_number() {
  return [](const std::string& text) -> std::string {
    if (parsed<std::uint64_t>(text)) return {};
    return message("'", text, "'; want a whole number from 0 to ",
                   std::numeric_limits<std::uint64_t>::max());
  };
}

Check real_number(double min, double max, bool open) {
  return [=](const std::string& text) -> std::string {
    const auto value = parsed<double>(text);
    if (value && std::isfinite(*value) && (open ? *value > min : *value >= min) && *value <= max) {
      return {};
    }
    return message("'", text, "'; want a number ", open ? "above " : "from ", min,
                   open ? ", at most " : " to ", max);
  };
}

Check one_of(std::vector<std::string> choices) {
  return [choices = std::move(choices)](const std::string& text) -> std::string {
    if (std::find(choices.begin(), choices.end(), text) != choices.end()) return {};
    return message("'", text, "'; want one of ", joined(choices, ", "));
  };
}

Check some_text() {
  return [](const std::string& text) -> std::string {
    return text.empty() ? "''; want a name that is not empty" : "";
  };
}

Check number_list(int max) {
  return [=](const std::string& text) -> std::string {
    std::vector<int> seen;
    for (const std::string& part : split(text, ',')) {
      const auto value = parsed<int>(part);
      if (!value || *value < 1 || *value > max ||
          std::find(seen.begin(), seen.end(), *value) != seen.end()) {
        return message("'", text, "'; want different whole numbers from 1 to ", max,
                       " with commas between them, as in 1,2,4");
      }
      seen.push_back(*value);
    }
    return {};
  };
}

std::vector<int> parse_numbers(const std::string& text) {
  std::vector<int> numbers;
  for (const std::string& part : split(text, ',')) numbers.push_back(parsed<int>(part).value());
  return numbers;
}

CommandLine::CommandLine(const std::string& usage, const std::string& summary)
    : usage_("usage: " + usage + "\n\n" + wrapped(summary, 0) + '\n') {
  app_.set_help_flag();
}

void CommandLine::group(const std::string& title) {
  options_ += '\n' + title + ":\n";
}

CLI::Option* CommandLine::flag(const std::string& name, bool& target, const std::string& help) {
  CLI::Option* option = app_.add_flag(name, target);
  add_help(name, "", help);
  settings_.push_back({name, option, {}, {}});
  return option;
}

void CommandLine::epilog(const std::string& text) {
  epilog_ += '\n' + text;
}

void CommandLine::add_help(const std::string& name, const std::string& argument,
                           const std::string& help) {
  std::string left = "  " + (name.starts_with('-') ? name : argument);
  if (name.starts_with('-') && !argument.empty()) left += ' ' + argument;
  left += left.size() + 2 > kHelpColumn ? '\n' + std::string(kHelpColumn, ' ')
                                        : std::string(kHelpColumn - left.size(), ' ');
  options_ += left + wrapped(help, kHelpColumn) + '\n';
}

std::optional<std::string> CommandLine::parse(const Arguments& arguments,
                                              const std::string& program) {
  const auto given = [&](const char* name) {
    return std::find(arguments.begin(), arguments.end(), name) != arguments.end();
  };
  if (given("--help") || given("-h")) return help();
  if (given("--version")) return version_text(program);
  try {
    // CLI11 takes the arguments last first.
    app_.parse(Arguments(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    throw UsageError(message(error.what(), " (--help lists the options)"));
  }
  return {};
}

std::string CommandLine::help() const {
  return usage_ + options_ + "  " + "--help" + std::string(kHelpColumn - 8, ' ') +
         "print this and end\n" + "  " + "--version" + std::string(kHelpColumn - 11, ' ') +
         "print version, instruction set and backends, and end\n" + epilog_;
}

Settings CommandLine::settings() const {
  Settings all;
  for (const Setting& setting : settings_) {
    if (!setting.text) {
      if (setting.option->count() > 0) all[setting.name];
      continue;
    }
    const std::string text = setting.text();
    // A default may stand for "not set" and be nothing that one can give.
    if (!text.empty() && (!setting.check || setting.check(text).empty())) all[setting.name] = text;
  }
  return all;
}

std::vector<std::string> CommandLine::given() const {
  std::vector<std::string> names;
  for (const Setting& setting : settings_) {
    if (setting.option->count() > 0) names.push_back(setting.name);
  }
  return names;
}

std::string exit_code_help() {
  return "Exit codes:\n"
         "    0  success\n"
         "    1  any other failure; parity: the weights differ\n"
         "    2  usage: an option or a combination of options that cannot work\n"
         "    3  data missing, damaged, or of another shape than the model takes\n"
         "    4  device missing, out of memory or failed\n"
         "    5  communication between replicas failed\n"
         "    6  a loss or gradient is not finite\n"
         "    7  a file cannot be written or read back\n"
         "    8  replicas that should be equal are not\n"
         "  130  SIGINT, SIGTERM or SIGHUP in training; weights so far are saved, a second one "
         "ends at "
         "once;\n       everything else ends by the signal itself (128 and its number in a "
         "shell)\n";
}

std::string version_text(const std::string& program) {
  std::string sets;
  for (const CpuSet set : supported_cpu_sets()) sets += ' ' + std::string(name_of(set));
  return message(program, " (lockstep) ", kVersion, "\nCPU instruction sets:", sets,
                 "; in use: ", name_of(preferred_cpu_set()),
                 "\nCUDA: ", kHasCuda ? "built in" : "not built in", '\n');
}

}  // namespace lockstep::apps
