// What a PNG or JPEG must be before stb may decode it: versions that distributions have trust these
// parts of a file.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::apps {

/// Whether every chunk of a PNG up to its end lies in the file. stb takes memory for what the
/// length of a chunk promises before it looks.
[[nodiscard]] bool has_whole_chunks(const std::vector<std::uint8_t>& png);

/// Whether no Huffman table of a JPEG has more than 256 codes, and every scan has the tables that
/// it names. Up to version 2.27 stb writes and reads beyond its tables otherwise.
[[nodiscard]] bool has_sound_tables(const std::vector<std::uint8_t>& jpeg);

}  // namespace lockstep::apps
