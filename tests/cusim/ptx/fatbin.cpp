// Reads the fat binary container.
#include "ptx/fatbin.h"

#include <cstdint>
#include <cstring>
#include <vector>

#include "ptx/elf.h"
#include "ptx/error.h"
#include "ptx/fatbin_layout.h"

namespace cusim::ptx {
namespace {

struct Entry {
  EntryHeader header;
  std::string_view content;
};

template <class T>
T read(std::string_view bytes, std::size_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T))
    throw TranslationError("the fat binary is cut off");
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

std::vector<Entry> read_entries(std::string_view section) {
  std::vector<Entry> entries;
  std::size_t at = 0;
  while (at + sizeof(FatBinaryHeader) <= section.size()) {
    const auto header = read<FatBinaryHeader>(section, at);
    if (header.magic != kFatBinaryMagic) {  // padding between two fat binaries
      at += 8;
      continue;
    }
    at += header.header_bytes;
    const std::size_t end = at + header.content_bytes;
    while (at < end) {
      const auto entry = read<EntryHeader>(section, at);
      at += entry.header_bytes;
      if (entry.header_bytes < sizeof(EntryHeader) || at > section.size() ||
          entry.content_bytes > section.size() - at) {
        throw TranslationError("the fat binary is cut off");
      }
      entries.push_back({entry, section.substr(at, entry.content_bytes)});
      at += entry.content_bytes;
    }
  }
  return entries;
}

std::string describe(const std::vector<Entry>& entries) {
  std::string text;
  for (const Entry& entry : entries) {
    if (!text.empty()) text += ", ";
    text += entry.header.kind == kPtxEntry ? "PTX compute_" : "machine code sm_";
    text += std::to_string(entry.header.arch);
  }
  return text;
}

}  // namespace

std::string embedded_ptx(std::string_view object, int arch) {
  std::vector<Entry> entries;
  for (const std::string_view section : elf_sections(object, ".nv_fatbin")) {
    const std::vector<Entry> more = read_entries(section);
    entries.insert(entries.end(), more.begin(), more.end());
  }
  if (entries.empty()) return {};

  for (const Entry& entry : entries) {
    if (entry.header.kind != kPtxEntry || entry.header.arch != static_cast<std::uint32_t>(arch))
      continue;
    if ((entry.header.flags & kCompressed) != 0) {
      throw TranslationError(
          message("the PTX for compute_", arch, " is compressed: compile with nvcc --no-compress"));
    }
    return std::string(entry.content.substr(0, entry.content.find('\0')));
  }
  throw TranslationError(message("no PTX for compute_", arch, ", only ", describe(entries),
                                 ": add ", arch, "-virtual to CUDA_ARCHITECTURES"));
}

}  // namespace cusim::ptx
