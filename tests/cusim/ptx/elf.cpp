// Reads section headers of ELF objects.
#include "ptx/elf.h"

#include <cstring>

#include <elf.h>

#include "ptx/error.h"

namespace cusim::ptx {
namespace {

std::string_view slice(std::string_view bytes, std::size_t offset, std::size_t size) {
  if (offset > bytes.size() || size > bytes.size() - offset)
    throw TranslationError("the object file is cut off");
  return bytes.substr(offset, size);
}

template <class T>
T read(std::string_view bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, slice(bytes, offset, sizeof(T)).data(), sizeof(T));
  return value;
}

std::string_view text_at(std::string_view strings, std::size_t offset) {
  if (offset >= strings.size()) return {};
  const std::string_view rest = strings.substr(offset);
  return rest.substr(0, rest.find('\0'));
}

}  // namespace

std::vector<std::string_view> elf_sections(std::string_view object, std::string_view name) {
  if (object.size() < sizeof(Elf64_Ehdr) || object.substr(0, SELFMAG) != ELFMAG ||
      object[EI_CLASS] != ELFCLASS64 || object[EI_DATA] != ELFDATA2LSB) {
    throw TranslationError("not a 64-bit little-endian ELF object: pass the .o files of nvcc");
  }
  const auto header = read<Elf64_Ehdr>(object, 0);
  const auto section = [&](std::size_t index) {
    return read<Elf64_Shdr>(object, header.e_shoff + index * header.e_shentsize);
  };
  const auto content = [&](const Elf64_Shdr& s) { return slice(object, s.sh_offset, s.sh_size); };

  const std::string_view names = content(section(header.e_shstrndx));
  std::vector<std::string_view> found;
  for (std::size_t i = 1; i < header.e_shnum; ++i) {
    const Elf64_Shdr s = section(i);
    if (s.sh_type != SHT_NOBITS && text_at(names, s.sh_name) == name) found.push_back(content(s));
  }
  return found;
}

}  // namespace cusim::ptx
