// One kernel or device function as a C++ function.
#pragma once

#include <map>
#include <string>
#include <unordered_map>

#include "ptx/expressions.h"
#include "ptx/module.h"

namespace cusim::ptx {

/// The C++ name of a kernel or device function.
std::string function_name(const std::string& ptx_name);

/// The first line of the function, up to the closing parenthesis.
std::string signature(const Function& function);

/// Places variables one after another; returns where this one lies and moves `used` behind it.
std::size_t place(const Variable& variable, std::size_t& used);

/// Writes a function: every register becomes a variable, every instruction a statement; labels,
/// jumps and scopes stay as they are.
class FunctionWriter {
 public:
  /// `names` are those of the module, `files` those of .loc; shared memory up to `shared_bytes` is
  /// taken by variables of the module.
  FunctionWriter(const Function& function, Names names, const std::map<int, std::string>& files,
                 std::size_t shared_bytes);

  /// @throws TranslationError naming the function and the instruction.
  std::string write();

  /// Shared memory taken after write(): the module's and the function's own.
  [[nodiscard]] std::size_t shared_bytes() const { return shared_bytes_; }

 private:
  void write(const ScopeBegin&);
  void write(const ScopeEnd&);
  void write(const Label& label);
  void write(const Registers& registers);
  void write(const Variable& variable);
  void write(const BranchTargets& targets);
  void write(const Instruction& instruction);
  std::string call(const Instruction& instruction) const;
  std::string indexed_branch(const Instruction& instruction) const;

  const Function& function_;
  Names names_;
  const std::map<int, std::string>& files_;
  std::size_t shared_bytes_;
  std::unordered_map<std::string, BranchTargets> branch_targets_;
  std::string text_;
};

}  // namespace cusim::ptx
