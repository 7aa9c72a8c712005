// What the fuzzing harnesses share: bytes as a file, and what a reader may do with a hostile one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>

namespace lockstep::fuzz {

using Bytes = std::span<const std::uint8_t>;

/// One file in memory that readers open by its path. Made once per process: a file on a disk would
/// take most of the time.
class MemoryFile {
 public:
  MemoryFile();
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  /// Replaces the content.
  void put(Bytes bytes);
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  int handle_;
  std::filesystem::path path_;
};

/// Memory that one allocation may take: so much anyway, and so much for each byte of the file.
struct MemoryLimit {
  std::size_t bytes = 0;
  std::size_t bytes_per_byte = 0;
};

/// Runs `read`, a reader at work on a file of `file_bytes` bytes. It must return or throw a
/// lockstep::Error with one line of a message that a terminal shows as it is, and allocate no more
/// at once than `limit` says (seen in builds with AddressSanitizer only); else the process aborts
/// and says why. Any other exception goes through.
void judge(std::size_t file_bytes, MemoryLimit limit, const std::function<void()>& read);

/// Aborts with `what` unless `good`.
void require(bool good, const char* what);

}  // namespace lockstep::fuzz

/// libFuzzer's interface: a harness defines it, libFuzzer or replay.cpp calls it.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
