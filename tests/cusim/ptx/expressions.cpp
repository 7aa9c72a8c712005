// Names and operands of PTX as C++ expressions.
#include "ptx/expressions.h"

#include <cctype>

#include "ptx/error.h"
#include "ptx/scanner.h"

namespace cusim::ptx {
namespace {

bool is_number(const std::string& operand) {
  return std::isdigit(static_cast<unsigned char>(operand[operand[0] == '-' ? 1 : 0])) != 0;
}

/// PTX writes floats by their bits (0f3F800000, 0d3FF0000000000000) and integers as C does.
std::string number_bits(const std::string& number) {
  if (number.size() == 10 && number[0] == '0' && (number[1] == 'f' || number[1] == 'F'))
    return message("0x", number.substr(2), "u");
  if (number.size() == 18 && number[0] == '0' && (number[1] == 'd' || number[1] == 'D'))
    return message("0x", number.substr(2), "ull");
  if (number.find('.') != std::string::npos)
    throw TranslationError(message("the number ", number, " is not understood"));
  // The most negative integer has no literal in C++, so the sign is taken off an unsigned one.
  const std::size_t digits = number[0] == '-' ? 1 : 0;
  const bool has_suffix = number.back() == 'U';
  return message(digits == 1 ? "-" : "", number.substr(digits), has_suffix ? "ll" : "ull");
}

}  // namespace

Names::Names() {
  for (const char axis : {'x', 'y', 'z'}) {
    expressions_[message("%tid.", axis)] = message("frame.thread.index.", axis);
    expressions_[message("%ntid.", axis)] = message("frame.launch.context.block.", axis);
    expressions_[message("%ctaid.", axis)] = message("frame.block.index.", axis);
    expressions_[message("%nctaid.", axis)] = message("frame.launch.context.grid.", axis);
  }
  expressions_["%laneid"] = "frame.thread.lane";
  expressions_["%warpid"] = "(frame.thread.linear / 32)";
  expressions_["%nwarpid"] = "((frame.block.thread_count + 31) / 32)";
  expressions_["%lanemask_eq"] = "(1u << frame.thread.lane)";
  expressions_["%lanemask_lt"] = "((1u << frame.thread.lane) - 1)";
  expressions_["%lanemask_le"] = "((2u << frame.thread.lane) - 1)";
  expressions_["%lanemask_gt"] = "(-2u << frame.thread.lane)";
  expressions_["%lanemask_ge"] = "(-1u << frame.thread.lane)";
  expressions_["%dynamic_smem_size"] = "(u32)frame.launch.context.dynamic_shared_bytes";
  expressions_["WARP_SZ"] = "32u";
  expressions_["vprintf"] = "device_printf";
  expressions_["__assertfail"] = "device_assert";
}

std::string Names::register_variable(std::string_view name) {
  return identifier(name) + "_";
}

std::string Names::identifier(std::string_view name) {
  std::string text;
  for (const char c : name) text += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return text;
}

void Names::add_register(const std::string& name) {
  expressions_[name] = register_variable(name);
}

void Names::add_address(const std::string& name, std::string expression) {
  expressions_[name] = std::move(expression);
}

std::string Names::bits(const std::string& operand) const {
  if (!operand.empty() && is_number(operand)) return number_bits(operand);
  const auto found = expressions_.find(operand);
  if (found == expressions_.end()) throw TranslationError(message("unknown name ", operand));
  return found->second;
}

std::string Names::value(const std::string& operand, const std::string& type) const {
  const bool negated = !operand.empty() && operand[0] == '!';
  return message(negated ? "!as<" : "as<", type, ">(", bits(operand.substr(negated ? 1 : 0)), ")");
}

std::string Names::lvalue(const std::string& operand) const {
  return operand == "_" ? "ignored" : bits(operand);
}

std::string Names::address(const std::string& operand) const {
  Scanner scanner(operand);
  if (!scanner.accept("[")) throw TranslationError(message(operand, " is not an address"));
  const std::string_view inside = scanner.until("]");
  const std::size_t plus = inside.find('+');
  const std::string base = bits(std::string(trim(inside.substr(0, plus))));
  if (plus == std::string_view::npos) return message("as<u64>(", base, ")");
  const std::string offset(trim(inside.substr(plus + 1)));
  return message("as<u64>(", base, ") + ", number_bits(offset));
}

}  // namespace cusim::ptx
