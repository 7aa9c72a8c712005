// PTX text to statements. Only the shape is looked at here; what an instruction means is in
// rules.cpp.
#include "ptx/parser.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "ptx/error.h"
#include "ptx/scanner.h"

namespace cusim::ptx {
namespace {

std::string one_line(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const bool space = c == '\n' || c == '\t' || c == '\r' || c == ' ';
    if (!space) {
      line += c;
    } else if (!line.empty() && line.back() != ' ') {
      line += ' ';
    }
  }
  return line;
}

/// Bytes of an initialiser: one number, or {numbers}.
std::string initial_bytes(std::string_view text, std::string_view type) {
  Scanner scanner(text);
  scanner.accept("{");
  std::string bytes;
  const std::size_t size = type_bytes(type);
  for (const std::string& item : split(scanner.rest().substr(0, scanner.rest().find('}')), ',')) {
    const bool is_float =
        item.size() > 2 && item[0] == '0' && std::strchr("fFdD", item[1]) != nullptr;
    std::size_t used = 0;
    std::uint64_t value = 0;
    const std::string digits = is_float ? item.substr(2) : item;
    try {
      value = item[0] == '-' ? static_cast<std::uint64_t>(std::stoll(digits, &used, 0))
                             : std::stoull(digits, &used, is_float ? 16 : 0);
    } catch (const std::exception&) {
      used = 0;
    }
    if (used == 0 || used != digits.size())
      throw TranslationError(message("the initial value ", item, " is not a number"));
    for (std::size_t i = 0; i < size; ++i) bytes += static_cast<char>(value >> (8 * i));
  }
  return bytes;
}

/// `.param .align 8 .b8 name[40]`, with `= initial value` for variables of a module; the words
/// .visible, .weak, .extern and .ptr may stand in it.
Variable parse_variable(std::string_view text) {
  Variable variable;
  std::string type;
  Scanner scanner(text);
  while (scanner.accept(".")) {
    const std::string word(scanner.name());
    if (word == "align") {
      variable.alignment = scanner.number();
    } else if (word == "global" || word == "const" || word == "shared" || word == "local" ||
               word == "param") {
      variable.space = word;
    } else if (word != "visible" && word != "weak" && word != "extern" && word != "ptr" &&
               word != "managed") {
      type = word;
    }
  }
  variable.name = scanner.name();
  variable.bytes = type_bytes(type);
  variable.alignment = std::max(variable.alignment, variable.bytes);
  while (scanner.accept("[")) {
    variable.bytes *= scanner.starts_with("]") ? 0 : scanner.number();
    scanner.accept("]");
  }
  if (scanner.accept("=")) variable.initial = initial_bytes(scanner.rest(), type);
  if (variable.space.empty() || variable.name.empty() || variable.initial.size() > variable.bytes) {
    throw TranslationError(message("not understood: ", one_line(text)));
  }
  return variable;
}

Registers parse_registers(std::string_view text) {
  Scanner scanner(text);
  scanner.accept(".reg");
  scanner.accept(".");
  Registers registers{.type = std::string(scanner.name()), .names = {}};
  type_bytes(registers.type);
  for (const std::string& item : split(scanner.rest(), ',')) {
    Scanner one(item);
    const std::string name(one.name());
    if (!one.accept("<")) {
      registers.names.push_back(name);
      continue;
    }
    const std::size_t count = one.number();
    for (std::size_t i = 0; i < count; ++i) registers.names.push_back(name + std::to_string(i));
  }
  return registers;
}

std::vector<Operand> parse_operands(std::string_view text) {
  std::vector<Operand> operands;
  for (const std::string& item : split(text, ',')) {
    if (item[0] == '{' || item[0] == '(') {
      operands.push_back(
          {.text = item,
           .elements = split(std::string_view(item).substr(1, item.size() - 2), ',')});
    } else {
      for (std::string& part : split(item, '|')) {
        operands.push_back({.text = std::move(part), .elements = {}});
      }
    }
  }
  return operands;
}

Instruction parse_instruction(std::string_view text) {
  Instruction instruction;
  instruction.text = one_line(text);
  Scanner scanner(instruction.text);
  if (scanner.accept("@")) instruction.guard = scanner.until(" ");
  const std::string_view rest = scanner.rest();
  const std::string_view full = rest.substr(0, rest.find_first_of(" \t"));
  instruction.modifiers = split(full, '.');
  instruction.opcode = instruction.modifiers.front();
  instruction.modifiers.erase(instruction.modifiers.begin());
  instruction.operands = parse_operands(rest.substr(full.size()));
  return instruction;
}

/// Reads the statements of a function up to its closing brace.
class BodyParser {
 public:
  explicit BodyParser(Scanner& scanner) : scanner_(scanner) {}

  std::vector<Statement> parse() {
    for (int depth = 1;;) {
      if (scanner_.done()) throw TranslationError("the PTX is cut off");
      if (scanner_.accept("{")) {
        ++depth;
        body_.emplace_back(ScopeBegin{});
      } else if (scanner_.accept("}")) {
        if (--depth == 0) return std::move(body_);
        body_.emplace_back(ScopeEnd{});
      } else if (scanner_.accept(".loc\t") || scanner_.accept(".loc ")) {
        parse_location();
      } else if (const std::string label(scanner_.label()); !label.empty()) {
        parse_labelled(label);
      } else {
        parse_statement();
      }
    }
  }

 private:
  void parse_location() {
    Scanner line(scanner_.line());
    file_ = static_cast<int>(line.number());
    line_ = static_cast<int>(line.number());
  }

  void parse_labelled(const std::string& label) {
    if (!scanner_.accept(".branchtargets")) {
      body_.emplace_back(Label{label});
      return;
    }
    body_.emplace_back(BranchTargets{label, split(scanner_.until(";"), ',')});
    scanner_.accept(";");
  }

  void parse_statement() {
    const std::string_view text = scanner_.until(";");
    scanner_.accept(";");
    const Scanner statement(text);
    if (statement.done() || statement.starts_with(".pragma")) return;
    if (statement.starts_with(".reg")) {
      body_.emplace_back(parse_registers(text));
    } else if (statement.starts_with(".")) {
      body_.emplace_back(parse_variable(text));
    } else {
      Instruction instruction = parse_instruction(text);
      instruction.file = file_;
      instruction.line = line_;
      body_.emplace_back(std::move(instruction));
    }
  }

  Scanner& scanner_;
  std::vector<Statement> body_;
  int file_ = 0;
  int line_ = 0;
};

std::vector<Variable> parse_parameters(Scanner& scanner) {
  std::vector<Variable> parameters;
  if (!scanner.accept("(")) return parameters;
  for (const std::string& item : split(scanner.until(")"), ',')) {
    parameters.push_back(parse_variable(item));
  }
  scanner.accept(")");
  return parameters;
}

/// `.visible .entry name(parameters) .maxntid 256 { body }`, or `.func (result) name(parameters)`;
/// a declaration ends with a semicolon and gives nothing.
void parse_function(Scanner& scanner, Module& module) {
  Function function;
  while (scanner.accept(".")) {
    if (scanner.name() == "entry") function.is_kernel = true;
  }
  std::vector<Variable> result = parse_parameters(scanner);
  if (!result.empty()) function.result = std::move(result.front());
  function.name = scanner.name();
  function.parameters = parse_parameters(scanner);
  scanner.until("{;");  // .maxntid, .minnctapersm, ...: nothing the simulation needs
  if (scanner.accept(";")) return;
  scanner.accept("{");
  try {
    function.body = BodyParser(scanner).parse();
  } catch (const TranslationError& error) {
    throw TranslationError(message(function.name, ": ", error.what()));
  }
  module.functions.push_back(std::move(function));
}

void parse_file(Scanner& scanner, Module& module) {
  const int number = static_cast<int>(scanner.number());
  const std::string_view line = scanner.line();
  const std::size_t begin = line.find('"') + 1;
  module.files[number] = line.substr(begin, line.find('"', begin) - begin);
}

}  // namespace

std::size_t type_bytes(std::string_view type) {
  static constexpr std::array<std::pair<std::string_view, std::size_t>, 19> kTypes{{{"pred", 1},
                                                                                    {"b8", 1},
                                                                                    {"u8", 1},
                                                                                    {"s8", 1},
                                                                                    {"b16", 2},
                                                                                    {"u16", 2},
                                                                                    {"s16", 2},
                                                                                    {"f16", 2},
                                                                                    {"bf16", 2},
                                                                                    {"b32", 4},
                                                                                    {"u32", 4},
                                                                                    {"s32", 4},
                                                                                    {"f32", 4},
                                                                                    {"f16x2", 4},
                                                                                    {"bf16x2", 4},
                                                                                    {"b64", 8},
                                                                                    {"u64", 8},
                                                                                    {"s64", 8},
                                                                                    {"f64", 8}}};
  for (const auto& [name, bytes] : kTypes) {
    if (name == type) return bytes;
  }
  throw TranslationError(message("unknown type .", type));
}

Module parse(std::string_view text) {
  const std::string kept = without_comments(text);
  Scanner scanner(kept);
  Module module;
  while (!scanner.done()) {
    if (scanner.accept(".file")) {
      parse_file(scanner, module);
    } else if (scanner.starts_with(".version") || scanner.starts_with(".target") ||
               scanner.starts_with(".address_size") || scanner.starts_with(".loc")) {
      scanner.line();
    } else if (scanner.accept(".section")) {
      scanner.skip_braces();  // debug information
    } else {
      Scanner ahead = scanner;
      const std::string_view header = ahead.until("{;(=");
      if (header.find(".entry") != std::string_view::npos ||
          header.find(".func") != std::string_view::npos) {
        parse_function(scanner, module);
      } else {
        module.variables.push_back(parse_variable(scanner.until(";")));
        scanner.accept(";");
      }
    }
  }
  return module;
}

}  // namespace cusim::ptx
