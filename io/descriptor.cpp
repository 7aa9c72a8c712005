#include "lockstep/io/descriptor.h"

#include <cerrno>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace lockstep {

namespace {

ReadError read_error(const std::filesystem::path& path, std::string_view action) {
  return ReadError(system_error(path, action).what());
}

/// Whether the current errno is about what there is under a path, and not about getting at it.
bool is_not_there() {
  for (const int error : {ENOENT, ENOTDIR, ELOOP, ENAMETOOLONG, ENXIO}) {
    if (errno == error) return true;
  }
  return false;
}

struct stat status_of(const std::filesystem::path& path, int handle) {
  struct stat status {};
  if (fstat(handle, &status) != 0) throw read_error(path, "look at the file");
  return status;
}

}  // namespace

IoError system_error(const std::filesystem::path& path, std::string_view action) {
  const std::error_code reason(errno, std::generic_category());
  return IoError(message(path.string(), ": cannot ", action, ": ", reason.message()));
}

Descriptor::Descriptor(const std::filesystem::path& path, int flags, std::string_view action)
    : path_(path), handle_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {
  if (handle_ >= 0) return;
  if ((flags & O_ACCMODE) == O_RDONLY && !is_not_there()) throw read_error(path_, action);
  throw system_error(path_, action);
}

Descriptor::~Descriptor() {
  if (handle_ >= 0) ::close(handle_);
}

Descriptor::Descriptor(Descriptor&& other) noexcept
    : path_(std::move(other.path_)), handle_(std::exchange(other.handle_, -1)) {}

bool Descriptor::is_regular() const {
  return S_ISREG(status_of(path_, handle_).st_mode);
}

std::uint64_t Descriptor::size() const {
  return static_cast<std::uint64_t>(status_of(path_, handle_).st_size);
}

void Descriptor::write_all(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(handle_, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      throw system_error(path_, "write");
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

void Descriptor::read_exactly(void* to, std::size_t bytes, std::uint64_t offset) const {
  auto* next = static_cast<std::byte*>(to);
  while (bytes > 0) {
    const ssize_t got = ::pread(handle_, next, bytes, static_cast<off_t>(offset));
    if (got < 0) {
      if (errno == EINTR) continue;
      throw read_error(path_, "read");
    }
    if (got == 0) throw IoError(message(path_.string(), ": became shorter while it was read"));
    next += got;
    offset += static_cast<std::uint64_t>(got);
    bytes -= static_cast<std::size_t>(got);
  }
}

std::string Descriptor::read_all() const {
  std::string bytes(size(), '\0');
  read_exactly(bytes.data(), bytes.size(), 0);
  return bytes;
}

bool Descriptor::lock() {
  return ::flock(handle_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

void Descriptor::sync() {
  if (::fsync(handle_) != 0) throw system_error(path_, "bring the file to the disk");
}

void Descriptor::shrink_to(std::uint64_t size) noexcept {
  // What could be done about a failure was to be prevented by this.
  static_cast<void>(::ftruncate(handle_, static_cast<off_t>(size)) == 0);
}

void Descriptor::close() {
  if (::close(std::exchange(handle_, -1)) != 0) throw system_error(path_, "close the file");
}

}  // namespace lockstep
