// Splits PTX text.
#include "ptx/scanner.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "ptx/error.h"

namespace cusim::ptx {
namespace {

bool in_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%';
}

}  // namespace

std::string without_comments(std::string_view text) {
  std::string kept;
  kept.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const std::string_view rest = text.substr(i);
    if (rest.substr(0, 2) == "//") {
      i += std::min(rest.find('\n'), rest.size());
    } else if (rest.substr(0, 2) == "/*") {
      i += std::min(rest.find("*/"), rest.size() - 2) + 2;
    } else {
      kept += text[i++];
    }
  }
  return kept;
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

std::vector<std::string> split(std::string_view text, char separator) {
  if (trim(text).empty()) return {};
  std::vector<std::string> parts;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (text[i] == separator && depth == 0)) {
      parts.emplace_back(trim(text.substr(begin, i - begin)));
      begin = i + 1;
    } else if (std::string_view("{[(").find(text[i]) != std::string_view::npos) {
      ++depth;
    } else if (std::string_view("}])").find(text[i]) != std::string_view::npos) {
      --depth;
    }
  }
  return parts;
}

void Scanner::advance(std::size_t count) {
  rest_.remove_prefix(count);
  rest_ = trim(rest_);
}

bool Scanner::accept(std::string_view prefix) {
  if (!starts_with(prefix)) return false;
  advance(prefix.size());
  return true;
}

std::size_t Scanner::number() {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
  if (error != std::errc()) {
    throw TranslationError(message("expected a number at: ", rest_.substr(0, rest_.find('\n'))));
  }
  advance(static_cast<std::size_t>(end - rest_.data()));
  return value;
}

std::string_view Scanner::name() {
  std::size_t length = 0;
  while (length < rest_.size() && in_name(rest_[length])) ++length;
  const std::string_view found = rest_.substr(0, length);
  advance(length);
  return found;
}

std::string_view Scanner::until(std::string_view ends) {
  const std::size_t end = rest_.find_first_of(ends);
  if (end == std::string_view::npos) {
    throw TranslationError(
        message("expected one of \"", ends, "\" after: ", rest_.substr(0, rest_.find('\n'))));
  }
  const std::string_view found = trim(rest_.substr(0, end));
  advance(end);
  return found;
}

std::string_view Scanner::line() {
  const std::string_view found = rest_.substr(0, rest_.find('\n'));
  advance(found.size());
  return found;
}

std::string_view Scanner::label() {
  Scanner ahead = *this;
  const std::string_view found = ahead.name();
  if (found.empty() || !ahead.starts_with(":") || ahead.starts_with("::")) return {};
  ahead.accept(":");
  *this = ahead;
  return found;
}

void Scanner::skip_braces() {
  int depth = 0;
  do {
    until("{}");
    depth += starts_with("{") ? 1 : -1;
    advance(1);
  } while (depth > 0);
}

}  // namespace cusim::ptx
