// A POSIX file that throws IoError naming its path and the system's reason; ReadError where it is
// there and cannot be read. Internal to this folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string_view>

#include "lockstep/core/error.h"

namespace lockstep {

/// The IoError for `path`, "cannot `action`" and the text of the current errno.
[[nodiscard]] IoError system_error(const std::filesystem::path& path, std::string_view action);

/// An open file with one owner.
class Descriptor {
 public:
  /// Opens `path` with the flags of open(2), and mode 0666 where it is made.
  Descriptor(const std::filesystem::path& path, int flags, std::string_view action);
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&&) = delete;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  [[nodiscard]] bool is_regular() const;
  [[nodiscard]] std::uint64_t size() const;
  void write_all(std::string_view bytes);
  /// Reads exactly `bytes` bytes from `offset`; an end before that is an error.
  void read_exactly(void* to, std::size_t bytes, std::uint64_t offset) const;
  /// As many bytes from the begin as the file has now.
  [[nodiscard]] std::string read_all() const;
  /// Takes the file for this process until it is closed; false when another process has it. True
  /// also on file systems that cannot tell.
  [[nodiscard]] bool lock();
  /// Waits until the disk has what was written.
  void sync();
  /// Sets the length back after a write that failed half way; says nothing when that cannot be
  /// done.
  void shrink_to(std::uint64_t size) noexcept;
  /// Closes now and reports what only the close finds out.
  void close();

 private:
  std::filesystem::path path_;
  int handle_;
};

}  // namespace lockstep
