// The table of instructions: PTX patterns and the C++ that stands for them.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "ptx/module.h"

namespace cusim::ptx {

/// A row of the table that fits an instruction.
struct Match {
  /// C++ with placeholders, see rules.cpp.
  std::string_view code;
  /// What the pattern's classes and optional words stand for: {"T", "f32"}, {"sat", "false"}.
  std::map<std::string, std::string> captures;
};

/// @throws TranslationError when no row fits opcode, modifiers and number of operands.
Match find_rule(const Instruction& instruction);

}  // namespace cusim::ptx
