#include "apps/pictures.h"

#include <fstream>

#include <zlib.h>

namespace lockstep::test {

namespace {

void append_word(std::string& text, std::uint32_t word) {
  for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(word >> shift & 0xFF);
}

/// A PNG chunk: length, type, content, CRC of type and content.
void append_chunk(std::string& png, const std::string& type, const std::string& content) {
  append_word(png, static_cast<std::uint32_t>(content.size()));
  const std::string body = type + content;
  png += body;
  append_word(png, static_cast<std::uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(body.data()),
                                                    static_cast<uInt>(body.size()))));
}

}  // namespace

void write_pgm(const std::string& path, std::size_t width, std::size_t height,
               const Pixels& pixels) {
  std::ofstream file(path, std::ios::binary);
  file << "P5\n" << width << ' ' << height << "\n255\n";
  file.write(reinterpret_cast<const char*>(pixels.data()),
             static_cast<std::streamsize>(pixels.size()));
}

void write_png(const std::string& path, std::size_t width, std::size_t height,
               const Pixels& pixels) {
  std::string rows;
  for (std::size_t y = 0; y < height; ++y) {
    rows += '\0';  // no filter
    rows.append(reinterpret_cast<const char*>(pixels.data()) + y * width, width);
  }
  uLongf size = compressBound(rows.size());
  std::string packed(size, '\0');
  compress(reinterpret_cast<Bytef*>(packed.data()), &size,
           reinterpret_cast<const Bytef*>(rows.data()), rows.size());
  packed.resize(size);

  std::string header;
  append_word(header, static_cast<std::uint32_t>(width));
  append_word(header, static_cast<std::uint32_t>(height));
  header += std::string("\x08\x00\x00\x00\x00", 5);  // 8 bits of grey, not interlaced
  std::string png = "\x89PNG\r\n\x1a\n";
  append_chunk(png, "IHDR", header);
  append_chunk(png, "IDAT", packed);
  append_chunk(png, "IEND", "");
  std::ofstream(path, std::ios::binary) << png;
}

}  // namespace lockstep::test
