// Sections of the object files that nvcc writes.
#pragma once

#include <string_view>
#include <vector>

namespace cusim::ptx {

/// Contents of every section called `name` in a 64-bit little-endian ELF object; views into
/// `object`.
/// @throws TranslationError when `object` is no such file or is cut off.
std::vector<std::string_view> elf_sections(std::string_view object, std::string_view name);

}  // namespace cusim::ptx
