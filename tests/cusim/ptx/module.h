// What the parser makes of a PTX file.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace cusim::ptx {

/// A variable or parameter of any state space.
struct Variable {
  std::string space;  // "global", "const", "shared", "local" or "param"
  std::string name;
  std::size_t bytes = 0;  // 0: `extern .shared`, sized at launch
  std::size_t alignment = 1;
  std::string initial;  // bytes; shorter than `bytes` means zeros at the end
};

/// One side of the comma in an instruction. `{a, b}` and `(a, b)` have elements, all else has text;
/// `d|p` counts as two operands.
struct Operand {
  std::string text;
  std::vector<std::string> elements;
};

struct Instruction {
  std::string guard;  // predicate, with `!` when negated; empty: always runs
  std::string opcode;
  std::vector<std::string> modifiers;  // the parts after the opcode, types included
  std::vector<Operand> operands;
  std::string text;  // for messages
  int file = 0;      // source position from .loc; 0: none
  int line = 0;
};

struct ScopeBegin {};
struct ScopeEnd {};
struct Label {
  std::string name;
};
/// `.reg .b32 %r<4>` has the names %r0 to %r3.
struct Registers {
  std::string type;
  std::vector<std::string> names;
};
/// Where `brx.idx` may jump to.
struct BranchTargets {
  std::string name;
  std::vector<std::string> labels;
};
using Statement =
    std::variant<ScopeBegin, ScopeEnd, Label, Registers, Variable, BranchTargets, Instruction>;

struct Function {
  bool is_kernel = false;
  std::string name;
  std::vector<Variable> parameters;
  std::optional<Variable> result;
  std::vector<Statement> body;
};

struct Module {
  std::map<int, std::string> files;  // of .loc
  std::vector<Variable> variables;
  std::vector<Function> functions;
};

}  // namespace cusim::ptx
