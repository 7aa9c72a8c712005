// Files in the format of MNIST, made for a test and gone after it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::test {

using Bytes = std::vector<std::uint8_t>;

/// A new empty folder, removed with all that is in it at the end of the test.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Header of magic (0, 0, type, number of extents) and big-endian extents.
[[nodiscard]] Bytes idx_header(const std::vector<std::uint32_t>& extents, std::uint8_t type = 8);
/// A whole file: header and values 0, 1, 2, ... modulo `modulus`.
[[nodiscard]] Bytes idx_bytes(const std::vector<std::uint32_t>& extents, int modulus = 256);
/// One gzip member that inflates to `bytes`.
[[nodiscard]] Bytes gzip(const Bytes& bytes);
[[nodiscard]] Bytes joined(Bytes first, const Bytes& second);
[[nodiscard]] Bytes text_bytes(const std::string& text);
void write_file(const std::filesystem::path& path, const Bytes& bytes);

}  // namespace lockstep::test
