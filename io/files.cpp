#include "lockstep/io/files.h"

#include <cerrno>
#include <cstdio>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lockstep/io/descriptor.h"

namespace lockstep {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTemporaryBegin = ".lockstep-";
constexpr std::string_view kTemporaryEnd = ".tmp";

/// Calls `make` with names in `folder` until it has made something of a name that nobody has;
/// another thread or a process that crashed may have the first. `make` returns whether it could,
/// with errno.
template <class Make>
fs::path make_temporary(const fs::path& folder, std::string_view what, const Make& make) {
  for (int number = 0;; ++number) {
    fs::path name = folder / message(kTemporaryBegin, ::getpid(), "-", number, kTemporaryEnd);
    if (make(name.c_str())) return name;
    if (errno != EEXIST) throw system_error(folder, what);
  }
}

fs::path make_temporary_file(const fs::path& folder) {
  return make_temporary(folder, "make a file in this folder", [](const char* name) {
    const int handle = ::open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (handle >= 0) ::close(handle);
    return handle >= 0;
  });
}

fs::path make_temporary_folder(const fs::path& folder) {
  return make_temporary(folder, "make a folder in this folder",
                        [](const char* name) { return ::mkdir(name, 0777) == 0; });
}

bool is_temporary(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.starts_with(kTemporaryBegin) && name.ends_with(kTemporaryEnd);
}

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : ".";
}

void sync_folder(const fs::path& folder) {
  Descriptor(folder, O_RDONLY | O_DIRECTORY, "open the folder").sync();
}

void put_at(const fs::path& from, const fs::path& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0) {
    throw system_error(to, "put what was written in its place");
  }
}

void write_and_sync(Descriptor file, std::span<const std::string_view> parts) {
  for (const std::string_view part : parts) file.write_all(part);
  file.sync();
  file.close();
}

void remove_tree(const fs::path& path) {
  std::error_code reason;
  fs::remove_all(path, reason);
  if (reason) throw IoError(message(path.string(), ": cannot remove it: ", reason.message()));
}

/// Removes a file unless it was renamed.
class Temporary {
 public:
  explicit Temporary(fs::path path) : path_(std::move(path)) {}
  ~Temporary() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  [[nodiscard]] const fs::path& path() const { return path_; }
  void rename_to(const fs::path& target) {
    put_at(path_, target);
    path_.clear();
  }

 private:
  fs::path path_;
};

}  // namespace

void write_file(const fs::path& path, std::span<const std::string_view> parts) {
  if (!path.has_filename()) {
    throw IoError(message("'", path.string(), "': this is no name of a file to write"));
  }
  Temporary temporary(make_temporary_file(folder_of(path)));
  write_and_sync(Descriptor(temporary.path(), O_WRONLY, "write"), parts);
  temporary.rename_to(path);
  sync_folder(folder_of(path));
}

void write_text_file(const fs::path& path, std::string_view text) {
  write_file(path, {&text, 1});
}

std::string read_file(const fs::path& path) {
  const Descriptor file(path, O_RDONLY | O_NONBLOCK, "open");
  if (!file.is_regular()) throw IoError(message(path.string(), ": is no regular file"));
  return file.read_all();
}

NewFolder::NewFolder(fs::path path) : path_(std::move(path)) {
  std::error_code ignored;
  if (fs::exists(fs::symlink_status(path_, ignored))) {
    throw IoError(message(path_.string(), ": is there already, and nothing is overwritten"));
  }
  temporary_ = make_temporary_folder(folder_of(path_));
}

NewFolder::~NewFolder() {
  std::error_code ignored;
  if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
}

void NewFolder::write(std::string_view name, std::span<const std::string_view> parts) {
  write_and_sync(Descriptor(temporary_ / name, O_WRONLY | O_CREAT | O_EXCL, "make this file"),
                 parts);
}

void NewFolder::put_in_place() {
  sync_folder(temporary_);
  put_at(temporary_, path_);
  temporary_.clear();
  sync_folder(folder_of(path_));
}

void remove_folder(const fs::path& folder) {
  const fs::path away = make_temporary_folder(folder_of(folder));
  try {
    put_at(folder, away / "removed");
  } catch (const IoError&) {
    std::error_code ignored;
    fs::remove(away, ignored);
    throw;
  }
  remove_tree(away);
}

void remove_leftovers(const fs::path& folder) {
  std::error_code reason;
  for (fs::directory_iterator entry(folder, reason), end; !reason && entry != end;
       entry.increment(reason)) {
    if (is_temporary(entry->path())) remove_tree(entry->path());
  }
  if (reason) throw IoError(message(folder.string(), ": cannot list it: ", reason.message()));
}

void check_writable(const fs::path& folder) try {
  const Temporary file(make_temporary_file(folder));
  write_text_file(file.path(), "in the place of an empty file");
  NewFolder made(folder / message(kTemporaryBegin, "check-", ::getpid(), kTemporaryEnd));
  const std::string_view part = "text";
  made.write("file", {&part, 1});
  made.put_in_place();
  remove_folder(folder / message(kTemporaryBegin, "check-", ::getpid(), kTemporaryEnd));
} catch (const IoError& error) {
  try {
    remove_leftovers(folder);
  } catch (const IoError&) {  // NOLINT(bugprone-empty-catch): the first error is the one to tell
  }
  throw IoError(message(error.what(), "; name a place with room where you may make, rename and ",
                        "remove files and folders, or make this one such a place"));
}

}  // namespace lockstep
