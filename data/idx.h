// The IDX file format (yann.lecun.com/exdb/mnist): big-endian header of magic and extents, then the
// elements.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "lockstep/core/shape.h"

namespace lockstep {

/// Called while files are read: bytes of the files (as they lie on the disk) read so far and in
/// all.
using ReadProgress = std::function<void(std::int64_t done, std::int64_t total)>;

/// Content of an IDX file of unsigned bytes.
struct IdxFile {
  Shape shape;
  std::vector<std::uint8_t> values;
};

/// Reads an IDX file of unsigned bytes with `rank` extents (1 to 4), raw or gzip (told by its first
/// bytes; several gzip members after one another are one file). `max_bytes` bounds the inflated
/// size that is believed. Throws DataError naming the file, what was found, what was expected and
/// what to do: for a missing, unreadable, empty, truncated or overlong file, a folder, HTML,
/// damaged gzip, another magic, element type or rank, an extent of 0, and extents that overflow or
/// are beyond `max_bytes` or the file. Memory is taken only as data really arrives. UsageError for
/// another `rank`.
[[nodiscard]] IdxFile read_idx(const std::filesystem::path& path, int rank,
                               std::uint64_t max_bytes = std::uint64_t{1} << 34,
                               const ReadProgress& progress = {});

}  // namespace lockstep
