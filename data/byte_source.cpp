// Raw and gzip reading in pieces of bounded size.
#include "lockstep/data/byte_source.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <system_error>
#include <utility>

#include "lockstep/core/error.h"

namespace lockstep::detail {
namespace {

constexpr std::uint64_t kBufferBytes = std::uint64_t{256} * 1024;
constexpr int kGzipWindow = 15 + 16;  // zlib's largest window, and its way of saying "gzip header"

}  // namespace

std::string fetch_command(const std::filesystem::path& path) {
  return message("scripts/fetch_mnist.sh ",
                 path.has_parent_path() ? path.parent_path().string() : ".");
}

std::string fetch_again(const std::filesystem::path& path) {
  return message("Delete it and fetch it again: ", fetch_command(path));
}

ByteSource::ByteSource(std::filesystem::path path, const ReadProgress& progress)
    : path_(std::move(path)), progress_(progress) {
  open();
  // No more than the file has; of room for two bytes even an empty one is told.
  buffer_.resize(std::clamp<std::uint64_t>(file_size_, 2, kBufferBytes));
  if (fill(2) == 0) {
    throw DataError(
        message(path_.string(), ": the file is empty, expected an IDX file. ", fetch_again(path_)));
  }
  compressed_ = end_ >= 2 && buffer_[0] == 0x1F && buffer_[1] == 0x8B;
  if (compressed_ && inflateInit2(&zlib_, kGzipWindow) != Z_OK) {
    throw DataError(message(
        path_.string(), ": zlib cannot start inflating, expected some memory for it. Free some."));
  }
}

ByteSource::~ByteSource() {
  if (compressed_) inflateEnd(&zlib_);
}

void ByteSource::open() {
  std::error_code error;
  const auto type = std::filesystem::status(path_, error).type();
  if (type == std::filesystem::file_type::not_found) {
    throw DataError(message(path_.string(), ": there is no such file, expected an IDX file. ",
                            "Check the path, or fetch it: ", fetch_command(path_)));
  }
  if (type == std::filesystem::file_type::directory) {
    throw DataError(
        message(path_.string(), ": this is a folder, expected an IDX file. Name the file in it."));
  }
  if (!error && type != std::filesystem::file_type::regular) {
    throw DataError(message(path_.string(),
                            ": this is a device, pipe or socket, expected a regular file. ",
                            "Copy the data into a file first."));
  }
  if (!error) file_size_ = std::filesystem::file_size(path_, error);
  if (!error) {
    file_.reset(std::fopen(path_.c_str(), "rb"));
    if (!file_) error.assign(errno, std::generic_category());
  }
  if (error) {
    throw DataError(
        message(path_.string(), ": cannot be opened (", error.message(),
                "), expected a readable IDX file. Check the path and its permissions."));
  }
  std::setvbuf(file_.get(), nullptr, _IONBF, 0);
}

std::size_t ByteSource::fill(std::size_t wanted) {
  if (end_ - next_ >= wanted) return end_ - next_;
  std::memmove(buffer_.data(), buffer_.data() + next_, end_ - next_);
  end_ -= next_;
  next_ = 0;
  const std::size_t got = std::fread(buffer_.data() + end_, 1, buffer_.size() - end_, file_.get());
  if (std::ferror(file_.get()) != 0) {
    throw DataError(
        message(path_.string(), ": cannot be read (", std::generic_category().message(errno),
                " after ", bytes_read_ + got,
                " bytes), expected a readable IDX file. Check the disk and the permissions."));
  }
  end_ += got;
  bytes_read_ += got;
  if (progress_ && got > 0) {
    progress_(static_cast<std::int64_t>(bytes_read_), static_cast<std::int64_t>(file_size_));
  }
  return end_;
}

std::size_t ByteSource::read(std::uint8_t* to, std::size_t count) {
  return compressed_ ? read_gzip(to, count) : read_raw(to, count);
}

std::size_t ByteSource::read_raw(std::uint8_t* to, std::size_t count) {
  std::size_t done = 0;
  while (done < count) {
    const std::size_t step = std::min(count - done, fill(1));
    if (step == 0) break;
    std::memcpy(to + done, buffer_.data() + next_, step);
    take(step);
    done += step;
  }
  return done;
}

std::size_t ByteSource::read_gzip(std::uint8_t* to, std::size_t count) {
  std::size_t done = 0;
  while (done < count && !finished_) {
    const std::size_t waiting = fill(1);
    if (waiting == 0) {
      ended_early_ = true;
      finished_ = true;
      break;
    }
    const std::size_t room = std::min<std::size_t>(count - done, std::numeric_limits<uInt>::max());
    zlib_.next_in = buffer_.data() + next_;
    zlib_.avail_in = static_cast<uInt>(waiting);
    zlib_.next_out = to + done;
    zlib_.avail_out = static_cast<uInt>(room);
    const int result = inflate(&zlib_, Z_NO_FLUSH);
    take(waiting - zlib_.avail_in);
    const std::size_t got = room - zlib_.avail_out;
    done += got;
    inflated_ += got;
    if (result == Z_STREAM_END) {
      finished_ = !next_member();
    } else if (result != Z_OK) {
      throw DataError(message(path_.string(), ": the gzip stream is damaged after ", inflated_,
                              " inflated bytes (",
                              zlib_.msg != nullptr ? zlib_.msg : zError(result),
                              "), expected whole gzip data. ", fetch_again(path_)));
    }
  }
  return done;
}

bool ByteSource::next_member() {
  const std::size_t waiting = fill(2);
  if (waiting == 0) return false;
  if (waiting >= 2 && buffer_[next_] == 0x1F && buffer_[next_ + 1] == 0x8B) {
    inflateReset(&zlib_);
    return true;
  }
  const std::uint64_t rest = file_size_ - (bytes_read_ - waiting);
  throw DataError(message(path_.string(), ": ", rest,
                          " bytes too many lie after the end of the gzip stream, ",
                          "expected nothing or another gzip stream. ", fetch_again(path_)));
}

}  // namespace lockstep::detail
