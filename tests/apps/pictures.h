// Writing grey pictures as PGM and PNG, and changing them, for tests of predict.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::test {

using Pixels = std::vector<std::uint8_t>;

void write_pgm(const std::string& path, std::size_t width, std::size_t height,
               const Pixels& pixels);
/// 8-bit grey, zlib-compressed.
void write_png(const std::string& path, std::size_t width, std::size_t height,
               const Pixels& pixels);

}  // namespace lockstep::test
