// A parsed PTX module as one C++ file.
#pragma once

#include <string>

#include "ptx/module.h"

namespace cusim::ptx {

/// C++ that includes ptx/ptx_runtime.h and, when loaded, announces the module's kernels and
/// variables to the simulated runtime. `name` is the object file, for messages.
/// @throws TranslationError naming kernel and instruction when one cannot be translated.
std::string emit(const Module& module, const std::string& name);

}  // namespace cusim::ptx
