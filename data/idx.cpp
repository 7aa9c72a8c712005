// Reading IDX files: every field is checked before it is believed.
#include "lockstep/data/idx.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <cstdio>
#include <limits>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "lockstep/core/error.h"
#include "lockstep/data/byte_source.h"

namespace lockstep {
namespace {

using detail::ByteSource;
using detail::fetch_again;

constexpr std::uint8_t kUnsignedByte = 0x08;
constexpr std::size_t kSniffBytes = 512;
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 62;  // what a Shape can count
constexpr std::uint64_t kPiece = std::uint64_t{64} << 10;
constexpr std::uint64_t kMaxExcessCounted = std::uint64_t{256} << 10;

std::string hex(std::span<const std::uint8_t> bytes) {
  std::string text = "0x";
  for (const std::uint8_t byte : bytes) {
    std::array<char, 3> digits{};
    std::snprintf(digits.data(), digits.size(), "%02x", byte);
    text += digits.data();
  }
  return text;
}

std::string element_name(std::uint8_t type) {
  switch (type) {
    case 0x08:
      return "unsigned byte";
    case 0x09:
      return "signed byte";
    case 0x0B:
      return "int16";
    case 0x0C:
      return "int32";
    case 0x0D:
      return "float32";
    case 0x0E:
      return "float64";
    default:
      return "unknown";
  }
}

std::string rank_name(int rank) {
  switch (rank) {
    case 1:
      return "labels (1 extent)";
    case 3:
      return "images (3 extents)";
    default:
      return message("data of ", rank, " extents");
  }
}

/// Web pages and error messages of file servers, saved under the name of the file.
bool looks_like_html(std::span<const std::uint8_t> head) {
  std::string text(head.begin(), head.end());
  for (char& letter : text)
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return (first != std::string::npos && text[first] == '<') ||
         text.find("<!doctype") != std::string::npos || text.find("<html") != std::string::npos;
}

class IdxReader {
 public:
  IdxReader(const std::filesystem::path& path, int rank, std::uint64_t max_bytes,
            const ReadProgress& progress)
      : path_(path),
        rank_(rank),
        max_bytes_(std::min(max_bytes, kMaxBytes)),
        source_(path, progress) {}

  IdxFile read() {
    read_head();
    check_magic();
    IdxFile file{.shape = read_extents(), .values = {}};
    const auto elements = static_cast<std::uint64_t>(file.shape.count());
    if (!source_.compressed()) check_length(elements, source_.file_size() - header_bytes());
    try {
      file.values = read_elements(elements);
    } catch (const std::bad_alloc&) {
      fail_memory(elements);
    } catch (const std::length_error&) {
      fail_memory(elements);
    }
    check_length(elements, file.values.size() + count_excess());
    if (source_.ended_early()) {
      fail("all ", elements,
           " bytes of data are there, but the end mark and check sum of the gzip stream are ",
           "missing, expected whole gzip data");
    }
    return file;
  }

 private:
  template <class... Parts>
  [[noreturn]] void fail(const Parts&... parts) const {
    throw DataError(message(path_.string(), ": ", parts..., ". ", fetch_again(path_)));
  }

  [[noreturn]] void fail_memory(std::uint64_t elements) const {
    throw DataError(message(path_.string(), ": its ", elements,
                            " bytes of data find no room in memory, expected ",
                            "them to fit. Use a machine with more memory, or a smaller file."));
  }

  [[nodiscard]] std::size_t header_bytes() const { return 4 + 4 * static_cast<std::size_t>(rank_); }

  void read_head() {
    head_size_ = source_.read(head_.data(), head_.size());
    const auto sniffed = std::span(head_).first(head_size_);
    if (head_size_ == 0 && !source_.ended_early()) {
      fail("the gzip stream holds nothing, expected an IDX file");
    }
    if (looks_like_html(sniffed) && head_[0] != 0) {
      fail("this is HTML or XML text, not data: the download failed. Expected an IDX file");
    }
    const std::size_t known = std::min<std::size_t>(head_size_, 4);
    const bool idx_so_far = std::equal(head_.begin(), head_.begin() + known, magic().begin());
    if (head_size_ < 4 || (head_size_ < header_bytes() && idx_so_far)) {
      fail("truncated: ", source_.compressed() ? "the gzip stream gives " : "the file has ",
           head_size_, " bytes, expected a header of ", header_bytes(),
           " bytes and the data after it (", header_bytes() - head_size_,
           " bytes of the header are missing)");
    }
  }

  [[nodiscard]] std::array<std::uint8_t, 4> magic() const {
    return {0, 0, kUnsignedByte, static_cast<std::uint8_t>(rank_)};
  }

  void check_magic() const {
    const auto found = std::span(head_).first<4>();
    const std::string text = message("magic ", hex(found), " found, expected ", hex(magic()));
    if (found[0] != 0 || found[1] != 0) fail("this is no IDX file: ", text);
    if (found[2] != kUnsignedByte) {
      fail("elements of type ", hex(found.subspan(2, 1)), " (", element_name(found[2]),
           "), expected 0x08 (", element_name(kUnsignedByte), "): ", text);
    }
    if (found[3] == rank_) return;
    if ((found[3] == 1 && rank_ == 3) || (found[3] == 3 && rank_ == 1)) {
      throw DataError(message(
          path_.string(), ": holds ", rank_name(found[3]), ", expected ", rank_name(rank_), ": ",
          text,
          ". The files of images and labels are swapped: give each the other's name, or fetch ",
          "them again: ", detail::fetch_command(path_)));
    }
    fail("holds ", rank_name(found[3]), ", expected ", rank_name(rank_), ": ", text);
  }

  [[nodiscard]] Shape read_extents() const {
    std::string text;
    std::uint64_t product = 1;
    bool overflow = false;
    std::array<std::int64_t, Shape::kMaxRank> extents{};
    for (int axis = 0; axis < rank_; ++axis) {
      const std::uint8_t* at = head_.data() + 4 + 4 * static_cast<std::ptrdiff_t>(axis);
      const std::uint64_t extent = (std::uint64_t{at[0]} << 24) | (std::uint64_t{at[1]} << 16) |
                                   (std::uint64_t{at[2]} << 8) | std::uint64_t{at[3]};
      if (extent == 0) fail("extent ", axis, " is 0, expected at least 1");
      overflow = overflow || product > std::numeric_limits<std::uint64_t>::max() / extent;
      product *= extent;
      extents[axis] = static_cast<std::int64_t>(extent);
      text += message(axis == 0 ? "" : " x ", extent);
    }
    if (overflow) {
      fail("extents ", text, " are more bytes than 64 bits can count, expected at most ",
           max_bytes_, " bytes");
    }
    if (product > max_bytes_) {
      fail("extents ", text, " are ", product, " bytes, expected at most ", max_bytes_, " bytes");
    }
    Shape shape;
    for (int axis = rank_ - 1; axis >= 0; --axis) shape = shape.with_first(extents[axis]);
    return shape;
  }

  /// Throws unless `found` bytes of data are `expected` ones.
  void check_length(std::uint64_t expected, std::uint64_t found) const {
    const char* holder = source_.compressed() ? "the gzip stream" : "the file";
    if (found < expected) {
      fail("truncated: ", holder, source_.ended_early() ? " ends early and" : "", " gives ", found,
           " bytes of data, ", expected, " expected from its header: ", expected - found,
           " bytes are missing");
    }
    if (found > expected + kMaxExcessCounted && source_.compressed()) {
      fail("too long: ", holder, " gives more than ", kMaxExcessCounted, " bytes beyond the ",
           expected, " bytes expected from its header: that many are too many");
    }
    if (found > expected) {
      fail("too long: ", holder, " gives ", found, " bytes of data, ", expected,
           " expected from its header: ", found - expected, " bytes are too many");
    }
  }

  std::vector<std::uint8_t> read_elements(std::uint64_t elements) {
    std::vector<std::uint8_t> values;
    if (!source_.compressed())
      values.reserve(elements);  // the file is that long, so this is no blind faith
    const std::size_t in_head = std::min<std::uint64_t>(head_size_ - header_bytes(), elements);
    values.assign(head_.begin() + header_bytes(), head_.begin() + header_bytes() + in_head);
    head_excess_ = head_size_ - header_bytes() - in_head;
    while (values.size() < elements) {
      const std::size_t have = values.size();
      const std::size_t step = std::min<std::uint64_t>(elements - have, kPiece);
      if (values.capacity() < have + step) {
        values.reserve(std::min<std::uint64_t>(elements, std::max(2 * have, have + step)));
      }
      values.resize(have + step);
      const std::size_t got = source_.read(values.data() + have, step);
      values.resize(have + got);
      if (got < step) break;
    }
    return values;
  }

  /// Bytes after the data; reads a gzip stream to its end, which checks its sums.
  std::uint64_t count_excess() {
    std::uint64_t excess = head_excess_;
    std::vector<std::uint8_t> scratch(kPiece);
    while (excess <= kMaxExcessCounted) {
      const std::size_t got = source_.read(scratch.data(), scratch.size());
      excess += got;
      if (got < scratch.size()) break;
    }
    return excess;
  }

  const std::filesystem::path& path_;
  int rank_;
  std::uint64_t max_bytes_;
  ByteSource source_;
  std::array<std::uint8_t, kSniffBytes> head_{};
  std::size_t head_size_ = 0;
  std::size_t head_excess_ = 0;
};

}  // namespace

IdxFile read_idx(const std::filesystem::path& path, int rank, std::uint64_t max_bytes,
                 const ReadProgress& progress) {
  if (rank < 1 || rank > Shape::kMaxRank) {
    throw UsageError(message("read_idx: rank is ", rank, ", expected 1 to ", Shape::kMaxRank));
  }
  return IdxReader(path, rank, max_bytes, progress).read();
}

}  // namespace lockstep
