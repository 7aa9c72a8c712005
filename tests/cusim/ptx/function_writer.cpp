// One kernel or device function as a C++ function.
#include "ptx/function_writer.h"

#include <utility>

#include "ptx/error.h"
#include "ptx/instruction.h"
#include "ptx/parser.h"

namespace cusim::ptx {
namespace {

std::string register_type(const std::string& type) {
  return type == "pred" ? "bool" : message("u", 8 * type_bytes(type));
}

/// Memory of the thread: a local array, or parameters of a call on their way.
std::string array(const Variable& variable) {
  return message("alignas(16) u8 ", Names::identifier(variable.name), "[", variable.bytes, "];\n");
}

}  // namespace

std::string function_name(const std::string& ptx_name) {
  return message("function_", Names::identifier(ptx_name));
}

std::string signature(const Function& function) {
  return message("void ", function_name(function.name),
                 "([[maybe_unused]] const Frame& frame, "
                 "[[maybe_unused]] const Arguments arguments, [[maybe_unused]] void* result)");
}

std::size_t place(const Variable& variable, std::size_t& used) {
  const std::size_t at = (used + variable.alignment - 1) / variable.alignment * variable.alignment;
  used = at + variable.bytes;
  return at;
}

FunctionWriter::FunctionWriter(const Function& function, Names names,
                               const std::map<int, std::string>& files, std::size_t shared_bytes)
    : function_(function), names_(std::move(names)), files_(files), shared_bytes_(shared_bytes) {
  for (std::size_t i = 0; i < function.parameters.size(); ++i) {
    names_.add_address(function.parameters[i].name, message("address_of(arguments[", i, "])"));
  }
  if (function.result) names_.add_address(function.result->name, "address_of(result)");
}

std::string FunctionWriter::write() {
  text_ = signature(function_) +
          " {\n[[maybe_unused]] Ignored ignored;\n[[maybe_unused]] bool carry = false;\n";
  for (const Statement& statement : function_.body) {
    std::visit([this](const auto& one) { write(one); }, statement);
  }
  return text_ + "}\n";
}

void FunctionWriter::write(const ScopeBegin&) {
  text_ += "{\n";
}

void FunctionWriter::write(const ScopeEnd&) {
  text_ += "}\n";
}

void FunctionWriter::write(const Label& label) {
  text_ += Names::identifier(label.name) + ":;\n";
}

void FunctionWriter::write(const Registers& registers) {
  std::string list;
  for (const std::string& name : registers.names) {
    names_.add_register(name);
    list += (list.empty() ? " " : ", ") + Names::register_variable(name) + "{}";
  }
  text_ += register_type(registers.type) + list + ";\n";
}

void FunctionWriter::write(const Variable& variable) {
  if (variable.space == "shared") {
    if (!function_.is_kernel)
      throw TranslationError(message(function_.name, ": a device function has shared memory ",
                                     variable.name, ": declare it in the kernel"));
    names_.add_address(variable.name, message(place(variable, shared_bytes_), "ull"));
    return;
  }
  names_.add_address(variable.name, message("address_of(", Names::identifier(variable.name), ")"));
  text_ += array(variable);
}

void FunctionWriter::write(const BranchTargets& targets) {
  branch_targets_[targets.name] = targets;
}

void FunctionWriter::write(const Instruction& instruction) {
  const auto file = files_.find(instruction.file);
  if (file != files_.end() && instruction.line > 0)
    text_ += message("#line ", instruction.line, " \"", file->second, "\"\n");
  try {
    if (!instruction.guard.empty())
      text_ += message("if (", names_.value(instruction.guard, "pred"), ") ");
    if (instruction.opcode == "call") {
      text_ += call(instruction);
    } else if (instruction.opcode == "brx") {
      text_ += indexed_branch(instruction);
    } else {
      text_ += translate(instruction, names_);
    }
  } catch (const TranslationError& error) {
    throw TranslationError(message(function_.name, ": `", instruction.text, "`: ", error.what()));
  }
  text_ += '\n';
}

/// `call (result), name, (arguments)`, where result and arguments may be absent.
std::string FunctionWriter::call(const Instruction& instruction) const {
  std::string result = "nullptr";
  std::string name;
  std::string arguments;
  for (const Operand& operand : instruction.operands) {
    if (operand.text.front() != '(') {
      if (!name.empty() || operand.text.front() == '%')
        throw TranslationError("calls through pointers are not simulated");
      name = names_.bits(operand.text);
    } else if (name.empty()) {
      result = Names::identifier(operand.elements.front());
    } else {
      for (const std::string& element : operand.elements)
        arguments += Names::identifier(element) + ", ";
    }
  }
  return message("{ const void* const to[] = {", arguments, "nullptr}; ", name, "(frame, to, ",
                 result, "); }");
}

/// `brx.idx index, targets`.
std::string FunctionWriter::indexed_branch(const Instruction& instruction) const {
  const auto found = instruction.operands.size() == 2
                         ? branch_targets_.find(instruction.operands[1].text)
                         : branch_targets_.end();
  if (found == branch_targets_.end()) throw TranslationError("no .branchtargets of that name");
  std::string text = message("switch (", names_.value(instruction.operands[0].text, "u32"), ") {");
  for (std::size_t i = 0; i < found->second.labels.size(); ++i) {
    text += message(" case ", i, ": goto ", Names::identifier(found->second.labels[i]), ";");
  }
  return text + " }";
}

}  // namespace cusim::ptx
