// Names and operands of PTX as C++ expressions.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "ptx/module.h"

namespace cusim::ptx {

/// The C++ expression of every name that a function may use: the variable of a register (an
/// unsigned integer or bool of its size), the address of anything else,
/// the C++ name of a function.
class Names {
 public:
  /// Knows the special registers (%tid.x and so on) and the functions behind printf and assert.
  Names();

  void add_register(const std::string& name);
  void add_address(const std::string& name, std::string expression);

  /// The variable of a register.
  static std::string register_variable(std::string_view name);
  /// `name` with everything that C++ does not allow replaced.
  static std::string identifier(std::string_view name);

  /// A register, a number or the address of a name, of whatever integer type.
  /// @throws TranslationError for an unknown name.
  [[nodiscard]] std::string bits(const std::string& operand) const;
  /// An operand read as a PTX type; `!` negates a predicate.
  [[nodiscard]] std::string value(const std::string& operand, const std::string& type) const;
  /// A register to write to; `_` is the one that forgets.
  [[nodiscard]] std::string lvalue(const std::string& operand) const;
  /// The address in `[base+offset]`.
  [[nodiscard]] std::string address(const std::string& operand) const;

 private:
  std::unordered_map<std::string, std::string> expressions_;
};

}  // namespace cusim::ptx
