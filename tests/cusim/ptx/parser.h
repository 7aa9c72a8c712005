// PTX text to statements.
#pragma once

#include <string>
#include <string_view>

#include "ptx/module.h"

namespace cusim::ptx {

/// @throws TranslationError naming the statement that is not understood.
Module parse(std::string_view text);

/// Bytes of a fundamental type (4 for "f32").
/// @throws TranslationError for an unknown one.
std::size_t type_bytes(std::string_view type);

}  // namespace cusim::ptx
