#include "lockstep/io/files.h"

#include <cerrno>
#include <cstdio>

#include <fcntl.h>
#include <unistd.h>

#include "lockstep/io/descriptor.h"

namespace lockstep {

namespace {

/// Removes a file unless it was renamed.
class Temporary {
 public:
  explicit Temporary(std::filesystem::path path) : path_(std::move(path)) {}
  ~Temporary() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  void rename_to(const std::filesystem::path& target) {
    if (std::rename(path_.c_str(), target.c_str()) != 0) {
      throw system_error(target, "put the written file in its place");
    }
    path_.clear();
  }

 private:
  std::filesystem::path path_;
};

/// A name in `folder` that nobody has; another thread or a process that crashed may have the first.
std::filesystem::path free_name(const std::filesystem::path& folder) {
  for (int number = 0;; ++number) {
    std::filesystem::path name = folder / message(".lockstep-", ::getpid(), "-", number, ".tmp");
    const int handle = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (handle >= 0) {
      ::close(handle);
      return name;
    }
    if (errno != EEXIST) throw system_error(folder, "make a file in this folder");
  }
}

}  // namespace

void write_file(const std::filesystem::path& path, std::span<const std::string_view> parts) {
  if (!path.has_filename()) {
    throw IoError(message("'", path.string(), "': this is no name of a file to write"));
  }
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  const std::filesystem::path name = free_name(folder);
  Temporary temporary(name);
  Descriptor file(name, O_WRONLY, "write");
  for (const std::string_view part : parts) file.write_all(part);
  file.sync();
  file.close();
  temporary.rename_to(path);
  Descriptor(folder, O_RDONLY | O_DIRECTORY, "open the folder").sync();
}

void write_text_file(const std::filesystem::path& path, std::string_view text) {
  write_file(path, {&text, 1});
}

}  // namespace lockstep
