#include "lockstep/io/run_folder.h"

#include <ctime>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

#include "lockstep/core/error.h"
#include "lockstep/io/descriptor.h"

namespace lockstep {

namespace {

namespace fs = std::filesystem;

IoError cannot_make(const fs::path& path, const std::error_code& reason) {
  return IoError(message(path.string(), ": cannot make this folder: ", reason.message(),
                         "; name a place that you may write to"));
}

void make_parents(const fs::path& path) {
  std::error_code reason;
  fs::create_directories(path, reason);
  if (reason) throw cannot_make(path, reason);
}

/// "20250131-235959"
std::string utc_name(std::chrono::system_clock::time_point now) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y%m%d-%H%M%S", &parts)};
}

/// Makes a folder in `root` that was not there.
fs::path make_new(const fs::path& root, const std::string& name) {
  for (int number = 1;; ++number) {
    fs::path path = root / (number == 1 ? name : message(name, "-", number));
    std::error_code reason;
    if (fs::create_directory(path, reason)) return path;
    // Anything of that name counts as taken, also a file.
    if (reason && reason != std::errc::file_exists) throw cannot_make(path, reason);
  }
}

/// Points `link` at `target` in one step: a reader finds the old run or the new one.
void point(const fs::path& link, const fs::path& target) {
  const fs::path temporary =
      link.parent_path() / message(".latest-", ::getpid(), "-", target.string());
  std::error_code reason;
  fs::create_symlink(target, temporary, reason);
  if (!reason) fs::rename(temporary, link, reason);
  if (reason) {
    std::error_code ignored;
    fs::remove(temporary, ignored);
    throw IoError(message(link.string(), ": cannot point this link at the new run: ",
                          reason.message(), "; move away what has its name"));
  }
}

}  // namespace

RunFolder::RunFolder(fs::path path)
    : path_(std::move(path)),
      lock_(std::make_shared<Descriptor>(path_, O_RDONLY | O_DIRECTORY, "open the folder")) {
  if (!lock_->lock()) {
    throw IoError(
        message(path_.string(), ": another process trains in this folder; wait for it or end it"));
  }
}

RunFolder RunFolder::open(const fs::path& path) {
  std::error_code reason;
  if (!fs::is_directory(path, reason)) {
    throw IoError(message(path.string(), ": there is no such run folder",
                          reason ? ": " + reason.message() : ""));
  }
  if (!fs::is_symlink(path, reason)) return RunFolder(path);
  return RunFolder(path.parent_path() / fs::read_symlink(path, reason));
}

RunFolder RunFolder::create(const fs::path& path, const fs::path& root,
                            std::chrono::system_clock::time_point now) {
  if (!path.empty()) {
    make_parents(path);
    std::error_code reason;
    const bool empty = fs::is_empty(path, reason);
    if (reason) throw cannot_make(path, reason);
    if (!empty) {
      throw IoError(message(path.string(),
                            ": this folder is not empty, and no run is overwritten; ",
                            "name another folder or remove it"));
    }
    return RunFolder(path);
  }
  make_parents(root);
  fs::path made = make_new(root, utc_name(now));
  point(root / "latest", made.filename());
  return RunFolder(std::move(made));
}

}  // namespace lockstep
