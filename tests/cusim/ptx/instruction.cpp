// Fills in the code that the table of rules has for an instruction.
#include "ptx/instruction.h"

#include <algorithm>
#include <cctype>

#include "ptx/error.h"
#include "ptx/rules.h"
#include "ptx/scanner.h"

namespace cusim::ptx {
namespace {

/// PTX writes three things as `mov`; packing and unpacking a vector get names of their own.
Instruction with_own_name(const Instruction& instruction) {
  Instruction named = instruction;
  if (instruction.opcode == "mov" && instruction.operands.size() == 2) {
    if (!instruction.operands[0].elements.empty()) named.opcode = "unpack";
    if (!instruction.operands[1].elements.empty()) named.opcode = "pack";
  }
  return named;
}

/// Expands one statement of a rule's code.
class Expansion {
 public:
  Expansion(const Instruction& instruction, const Names& names, const Match& match)
      : instruction_(instruction), names_(names), match_(match) {}

  /// `element` is what [] and # stand for.
  std::string operator()(std::string_view code, std::size_t element) {
    element_ = element;
    const std::size_t equals = code.find(" = ");
    if (code[0] != '$' || equals == std::string_view::npos) return fill(code);
    const std::string target = operand(code.substr(0, equals));
    return message("set(", names_.lvalue(target), ", ", fill(code.substr(equals + 3)), ")");
  }

  /// How often the statement is to be written.
  [[nodiscard]] std::size_t repetitions(std::string_view code) const {
    const std::size_t mark = code.find("[]");
    if (mark == std::string_view::npos) return 1;
    return std::max<std::size_t>(1, at(code[mark - 1]).elements.size());
  }

 private:
  [[nodiscard]] const Operand& at(char digit) const {
    return instruction_.operands[static_cast<std::size_t>(digit - '0')];
  }

  /// The text of `$1`, or of the current element of `$1[]`.
  [[nodiscard]] std::string operand(std::string_view reference) const {
    const Operand& found = at(reference[1]);
    const bool one_of_many = reference.find("[]") != std::string_view::npos;
    if (found.elements.empty()) return found.text;
    if (!one_of_many) throw TranslationError(message(found.text, " may not be a vector here"));
    return found.elements[element_];
  }

  std::string fill(std::string_view code) const {
    std::string text;
    while (!code.empty()) {
      const std::size_t mark = code.find_first_of("$#");
      text += code.substr(0, mark);
      if (mark == std::string_view::npos) break;
      code.remove_prefix(mark);
      if (code[0] == '#') {
        text += std::to_string(element_);
        code.remove_prefix(1);
      } else if (std::isdigit(static_cast<unsigned char>(code[1])) != 0) {
        text += fill_operand(code);
      } else {
        code.remove_prefix(1);
        text += fill_capture(code);
      }
    }
    return text;
  }

  static std::string take_word(std::string_view& code) {
    std::size_t length = 0;
    while (length < code.size() && std::isalnum(static_cast<unsigned char>(code[length])) != 0)
      ++length;
    const std::string word(code.substr(0, length));
    code.remove_prefix(length);
    return word;
  }

  std::string fill_capture(std::string_view& code) const {
    return match_.captures.at(take_word(code));
  }

  std::string fill_operand(std::string_view& code) const {
    const std::string_view reference = code.substr(0, code.substr(2, 2) == "[]" ? 4 : 2);
    code.remove_prefix(reference.size());
    if (code.substr(0, 2) == "{}") {
      code.remove_prefix(2);
      return all_elements(at(reference[1]));
    }
    if (code.substr(0, 1) != ":") return read(operand(reference), instruction_.modifiers.back());
    code.remove_prefix(1);
    return read(operand(reference), take_word(code));
  }

  std::string all_elements(const Operand& vector) const {
    std::string list;
    for (const std::string& element : vector.elements) {
      list += (list.empty() ? "" : ", ") + names_.bits(element);
    }
    return list;
  }

  std::string read(const std::string& text, const std::string& form) const {
    if (form == "unused") return "";
    if (form == "zero") {
      if (text != "0") throw TranslationError("only barrier 0 with all threads is simulated");
      return "";
    }
    if (form == "address") return names_.address(text);
    if (form == "label") return Names::identifier(text);
    if (form == "lvalue") return names_.lvalue(text);
    if (form == "bits") return names_.bits(text);
    const bool is_class = std::isupper(static_cast<unsigned char>(form[0])) != 0;
    return names_.value(text, is_class ? match_.captures.at(form) : form);
  }

  const Instruction& instruction_;
  const Names& names_;
  const Match& match_;
  std::size_t element_ = 0;
};

}  // namespace

std::string translate(const Instruction& instruction, const Names& names) {
  const Instruction named = with_own_name(instruction);
  const Match match = find_rule(named);
  Expansion expand(named, names, match);
  std::string statements;
  std::size_t count = 0;
  for (const std::string& code : split(match.code, ';')) {
    for (std::size_t i = 0; i < expand.repetitions(code); ++i, ++count) {
      if (count > 0) statements += ' ';
      statements += expand(code, i);
      statements += ';';
    }
  }
  if (count == 0) return ";";
  return count == 1 ? statements : message("{ ", statements, " }");
}

}  // namespace cusim::ptx
