// One instruction to one C++ statement.
#pragma once

#include <string>

#include "ptx/expressions.h"
#include "ptx/module.h"

namespace cusim::ptx {

/// The C++ of an instruction other than `call` and `brx.idx`, without its guard.
/// @throws TranslationError when there is no rule for it.
std::string translate(const Instruction& instruction, const Names& names);

}  // namespace cusim::ptx
