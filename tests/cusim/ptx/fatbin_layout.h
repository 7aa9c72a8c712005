// The layout of fat binaries, what nvcc embeds in an object. It is not documented; this is what
// nvcc 13 writes: a header, entries behind it, each with its code for one architecture.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cusim::ptx {

inline constexpr std::uint32_t kFatBinaryMagic = 0xBA55ED50;
inline constexpr std::uint16_t kPtxEntry = 1;
inline constexpr std::uint64_t kCompressed = 0x8000 | 0x2000;  // ZSTD | LZ4

struct FatBinaryHeader {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint16_t header_bytes;
  std::uint64_t content_bytes;  // the entries that follow
};
static_assert(sizeof(FatBinaryHeader) == 16);

struct EntryHeader {
  std::uint16_t kind;  // 1 PTX, 2 machine code
  std::uint16_t version;
  std::uint32_t header_bytes;
  std::uint64_t content_bytes;  // padded
  std::uint32_t compressed_bytes;
  std::uint32_t options_offset;
  std::uint16_t minor;
  std::uint16_t major;
  std::uint32_t arch;  // 90 for sm_90 and compute_90
  std::uint64_t unknown;
  std::uint64_t flags;
  std::uint64_t reserved;
  std::uint64_t uncompressed_bytes;
};
static_assert(sizeof(EntryHeader) == 64);

/// What the host code of an object hands to __cudaRegisterFatBinary.
struct FatBinaryWrapper {
  static constexpr std::uint32_t kMagic = 0x466243b1;
  std::uint32_t magic;
  std::uint32_t version;
  const std::byte* binary;
  const void* more;
};

}  // namespace cusim::ptx
