#include "data/idx_files.h"

#include <fstream>
#include <stdexcept>
#include <system_error>

#include <stdlib.h>
#include <zlib.h>

namespace lockstep::test {

namespace fs = std::filesystem;

TempFolder::TempFolder() {
  std::string pattern = (fs::temp_directory_path() / "lockstep_data_XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr)
    throw std::runtime_error("cannot make a folder for the test: " + pattern);
  path_ = pattern;
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

Bytes idx_header(const std::vector<std::uint32_t>& extents, std::uint8_t type) {
  Bytes bytes{0, 0, type, static_cast<std::uint8_t>(extents.size())};
  for (const std::uint32_t extent : extents) {
    for (const int shift : {24, 16, 8, 0})
      bytes.push_back(static_cast<std::uint8_t>(extent >> shift));
  }
  return bytes;
}

Bytes idx_bytes(const std::vector<std::uint32_t>& extents, int modulus) {
  Bytes bytes = idx_header(extents);
  std::size_t count = 1;
  for (const std::uint32_t extent : extents) count *= extent;
  for (std::size_t i = 0; i < count; ++i)
    bytes.push_back(static_cast<std::uint8_t>(i % static_cast<std::size_t>(modulus)));
  return bytes;
}

Bytes gzip(const Bytes& bytes) {
  z_stream stream{};
  constexpr int kGzipWindow = 15 + 16;
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::runtime_error("zlib cannot start deflating");
  }
  Bytes packed(deflateBound(&stream, bytes.size()) + 64);
  stream.next_in = const_cast<Bytef*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = packed.data();
  stream.avail_out = static_cast<uInt>(packed.size());
  const int result = deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  if (result != Z_STREAM_END) throw std::runtime_error("zlib did not finish deflating");
  return packed;
}

Bytes joined(Bytes first, const Bytes& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

Bytes text_bytes(const std::string& text) {
  return {text.begin(), text.end()};
}

void write_file(const fs::path& path, const Bytes& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  for (const std::uint8_t byte : bytes) file.put(static_cast<char>(byte));
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path.string());
}

}  // namespace lockstep::test
