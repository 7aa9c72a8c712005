// The IDX file format (yann.lecun.com/exdb/mnist): big-endian header of magic and extents, then the elements.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "lockstep/core/shape.h"

namespace lockstep {

/// Content of an IDX file of unsigned bytes.
struct IdxFile {
  Shape shape;
  std::vector<std::uint8_t> values;
};

/// Reads an IDX file of unsigned bytes with `rank` extents, raw or gzip (told by its first bytes). `max_bytes` bounds the
/// inflated size that is believed. Throws DataError naming the file, what was found, what was expected and what to do: for a missing,
/// empty, truncated or overlong file, HTML, another magic, element type or rank, and extents that overflow or are beyond
/// what the file can hold. Memory is taken only as data really arrives.
[[nodiscard]] IdxFile read_idx(const std::filesystem::path& path, int rank,
                               std::uint64_t max_bytes = std::uint64_t{1} << 34);

}  // namespace lockstep
