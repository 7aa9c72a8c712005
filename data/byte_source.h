// A file read front to back, inflated on the way where it is gzip. Internal to this folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <zlib.h>

#include "lockstep/data/idx.h"

namespace lockstep::detail {

/// The command that fetches the folder of `path`.
[[nodiscard]] std::string fetch_command(const std::filesystem::path& path);
/// What to do about a file of a data set that is damaged or not what it should be.
[[nodiscard]] std::string fetch_again(const std::filesystem::path& path);

/// Opens one regular file. Every error is a DataError that names it.
class ByteSource {
 public:
  /// Throws for a missing or unreadable file, a folder, anything else that is no regular file, and
  /// an empty file. `progress` must outlive this.
  ByteSource(std::filesystem::path path, const ReadProgress& progress);
  ~ByteSource();
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  [[nodiscard]] bool compressed() const { return compressed_; }
  /// Bytes on the disk.
  [[nodiscard]] std::uint64_t file_size() const { return file_size_; }
  /// A gzip stream ended before its end mark. Known once `read` has returned less than asked for.
  [[nodiscard]] bool ended_early() const { return ended_early_; }

  /// Reads (inflated) bytes; fewer than `count` only at the end. Throws for read errors, damaged
  /// gzip and for bytes after a gzip stream that are no gzip stream.
  std::size_t read(std::uint8_t* to, std::size_t count);

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  void open();
  /// Has at least `wanted` bytes waiting in the buffer unless the file ends before; returns how
  /// many wait.
  std::size_t fill(std::size_t wanted);
  std::size_t read_raw(std::uint8_t* to, std::size_t count);
  std::size_t read_gzip(std::uint8_t* to, std::size_t count);
  bool next_member();
  void take(std::size_t count) { next_ += count; }

  std::filesystem::path path_;
  const ReadProgress& progress_;
  std::unique_ptr<std::FILE, CloseFile> file_;
  std::uint64_t file_size_ = 0;
  std::uint64_t bytes_read_ = 0;
  std::uint64_t inflated_ = 0;
  std::vector<std::uint8_t> buffer_;
  std::size_t next_ = 0;  // first waiting byte
  std::size_t end_ = 0;   // one past the last
  z_stream zlib_{};
  bool compressed_ = false;
  bool finished_ = false;
  bool ended_early_ = false;
};

}  // namespace lockstep::detail
