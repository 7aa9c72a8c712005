// Pictures from files as grey values.
#pragma once

#include <cstddef>
#include <filesystem>
#include <vector>

namespace lockstep::apps {

/// Grey values in [0, 1], row after row, 0 black.
struct GreyImage {
  std::size_t width = 0;
  std::size_t height = 0;
  std::vector<float> values;

  [[nodiscard]] float at(std::size_t x, std::size_t y) const { return values[y * width + x]; }
};

/// Decodes a PNG, JPEG or PGM/PPM file; colours become grey, transparent places white. Throws
/// DataError naming the file for anything else, damaged files, and pictures beyond 64 megapixels.
[[nodiscard]] GreyImage read_image(const std::filesystem::path& path);

}  // namespace lockstep::apps
