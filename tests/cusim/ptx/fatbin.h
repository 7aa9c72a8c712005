// The fat binary that nvcc embeds in an object file: compiled code and PTX for several
// architectures.
#pragma once

#include <string>
#include <string_view>

namespace cusim::ptx {

/// PTX for virtual architecture `arch` (90 for compute_90) in an ELF object of nvcc; empty when the
/// object has no device code at all.
/// @throws TranslationError when there is device code but no PTX for `arch` (the message lists what
///   there is), when it is compressed, or when the container is damaged.
std::string embedded_ptx(std::string_view object, int arch);

}  // namespace cusim::ptx
