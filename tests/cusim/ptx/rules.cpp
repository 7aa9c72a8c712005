// Finds the row of the table that an instruction fits.
#include "ptx/rules.h"

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "ptx/error.h"
#include "ptx/rule_table.h"
#include "ptx/scanner.h"

namespace cusim::ptx {
namespace {

constexpr std::array<std::span<const Rule>, 5> kGroups{kArithmetic, kBits, kSelection, kMemory,
                                                       kThreads};

const Class* find_class(std::string_view name) {
  const auto* found = std::find_if(kClasses.begin(), kClasses.end(),
                                   [&](const Class& one) { return one.name == name; });
  return found == kClasses.end() ? nullptr : found;
}

bool has_word(std::string_view words, std::string_view word) {
  while (!words.empty()) {
    const std::string_view first = words.substr(0, words.find(' '));
    if (first == word) return true;
    words.remove_prefix(std::min(first.size() + 1, words.size()));
  }
  return false;
}

/// `shared::cta` is the space shared: nothing after the colons matters here.
std::string without_qualifier(const std::string& word) {
  return word.substr(0, word.find("::"));
}

/// One word of a pattern.
struct Word {
  std::string_view name;
  bool optional = false;
};

/// The words of a pattern after the opcode: ".rn[.ftz].f32".
std::vector<Word> words_of(std::string_view pattern) {
  std::vector<Word> words;
  pattern.remove_prefix(std::min(pattern.find_first_of(".["), pattern.size()));
  while (!pattern.empty()) {
    const bool optional = pattern.front() == '[';
    pattern.remove_prefix(optional ? 2 : 1);
    const std::size_t length = std::min(pattern.find_first_of(".[]"), pattern.size());
    words.push_back({pattern.substr(0, length), optional});
    pattern.remove_prefix(length + (optional ? 1 : 0));
  }
  return words;
}

using Captures = std::map<std::string, std::string>;

std::optional<Captures> match(std::string_view pattern, const std::vector<std::string>& modifiers) {
  Captures captures;
  auto next = modifiers.begin();
  for (const Word& word : words_of(pattern)) {
    const Class* one_of = find_class(word.name);
    const bool fits = next != modifiers.end() &&
                      (one_of == nullptr ? *next == word.name : has_word(one_of->words, *next));
    if (!fits && !word.optional) return std::nullopt;
    std::string& capture = captures[std::string(word.name)];
    if (one_of == nullptr) {
      capture = fits ? "true" : "false";
    } else {
      capture = fits ? without_qualifier(*next) : std::string(one_of->fallback);
    }
    if (fits) ++next;
  }
  if (next != modifiers.end()) return std::nullopt;
  return captures;
}

/// How many operands the code of a row uses.
std::size_t operand_count(std::string_view code) {
  std::size_t count = 0;
  for (std::size_t i = 0; i + 1 < code.size(); ++i) {
    const char digit = code[i + 1];
    if (code[i] == '$' && digit >= '0' && digit <= '9')
      count = std::max(count, static_cast<std::size_t>(digit - '0') + 1);
  }
  return count;
}

}  // namespace

Match find_rule(const Instruction& instruction) {
  for (const std::span<const Rule> group : kGroups) {
    for (const Rule& rule : group) {
      const std::string_view opcode = rule.pattern.substr(0, rule.pattern.find_first_of(".["));
      if (opcode != instruction.opcode || operand_count(rule.code) != instruction.operands.size())
        continue;
      if (auto captures = match(rule.pattern, instruction.modifiers))
        return {rule.code, std::move(*captures)};
    }
  }
  throw TranslationError("no rule for this instruction: add one to ptx/rule_table.h");
}

}  // namespace cusim::ptx
