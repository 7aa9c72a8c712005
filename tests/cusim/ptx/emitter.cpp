// A parsed PTX module as one C++ file: its functions, then the tables that announce them.
#include "ptx/emitter.h"

#include <utility>

#include "ptx/error.h"
#include "ptx/function_writer.h"

namespace cusim::ptx {
namespace {

struct PlacedVariable {
  const Variable* variable;
  std::size_t offset;
};

class Emitter {
 public:
  explicit Emitter(const Module& module) : module_(module) {
    for (const Variable& variable : module.variables) declare(variable);
    for (const Function& function : module.functions)
      names_.add_address(function.name, function_name(function.name));
  }

  std::string emit(const std::string& name) {
    text_ = "#include \"ptx/ptx_runtime.h\"\n\nnamespace {\nusing namespace cusim::ptx;\n\n";
    for (const Function& function : module_.functions) text_ += signature(function) + ";\n";
    for (const Function& function : module_.functions) write(function);
    write_variables();
    text_ += message("const cusim::KernelInfo kernels[] = {\n", kernels_, "{}};\n");
    text_ +=
        message("const cusim::ModuleInfo module_info = {\"", name, "\", kernels, ", kernel_count_,
                ", variables, ", variables_.size(), ", ", variable_bytes_, "};\n");
    text_ +=
        "[[maybe_unused]] const bool announced = (cusim_register_module(&module_info), true);\n";
    return text_ + "}\n";
  }

 private:
  void declare(const Variable& variable) {
    if (variable.space != "shared") {
      const std::size_t offset = place(variable, variable_bytes_);
      variables_.push_back({&variable, offset});
      names_.add_address(variable.name, message("frame.launch.variable(", offset, ")"));
    } else if (variable.bytes == 0) {
      names_.add_address(variable.name, "frame.launch.dynamic_shared");
    } else {
      names_.add_address(variable.name, message(place(variable, shared_bytes_), "ull"));
    }
  }

  void write(const Function& function) {
    FunctionWriter writer(function, names_, module_.files, shared_bytes_);
    text_ += message("\n", writer.write());
    if (!function.is_kernel) return;
    std::string sizes;
    for (const Variable& parameter : function.parameters) sizes += message(parameter.bytes, ", ");
    const std::string cpp = function_name(function.name);
    text_ += message("const unsigned sizes_", cpp, "[] = {", sizes, "0};\n");
    kernels_ +=
        message("{\"", function.name, "\", ", function.parameters.size(), ", sizes_", cpp, ", ",
                writer.shared_bytes(), ", run<", cpp, ", ", writer.shared_bytes(), ">},\n");
    ++kernel_count_;
  }

  void write_variables() {
    std::string rows;
    for (std::size_t i = 0; i < variables_.size(); ++i) {
      const auto& [variable, offset] = variables_[i];
      std::string initial = "nullptr";
      if (!variable->initial.empty()) {
        initial = message("initial_", i);
        text_ += message("const unsigned char ", initial, "[] = {");
        for (const char byte : variable->initial)
          text_ += message(static_cast<int>(static_cast<unsigned char>(byte)), ",");
        text_ += "};\n";
      }
      rows += message("{\"", variable->name, "\", ", variable->bytes, ", ", initial, ", ",
                      variable->initial.size(), ", ", offset, "},\n");
    }
    text_ += message("const cusim::VariableInfo variables[] = {\n", rows, "{}};\n");
  }

  const Module& module_;
  Names names_;
  std::vector<PlacedVariable> variables_;
  std::size_t variable_bytes_ = 0;
  std::size_t shared_bytes_ = 0;  // of variables outside of functions
  std::string kernels_;
  int kernel_count_ = 0;
  std::string text_;
};

}  // namespace

std::string emit(const Module& module, const std::string& name) {
  return Emitter(module).emit(name);
}

}  // namespace cusim::ptx
