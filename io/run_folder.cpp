#include "lockstep/io/run_folder.h"

#include <ctime>
#include <regex>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "lockstep/core/error.h"
#include "lockstep/io/descriptor.h"
#include "lockstep/io/files.h"

namespace lockstep {

namespace {

namespace fs = std::filesystem;

IoError cannot_make(const fs::path& path, const std::error_code& reason) {
  return IoError(message(path.string(), ": cannot make this folder: ", reason.message(),
                         "; name a place that you may write to"));
}

/// Folders that were not there; gone again unless they are kept.
class MadeFolders {
 public:
  MadeFolders() = default;
  ~MadeFolders() {
    std::error_code ignored;
    for (auto path = made_.rbegin(); path != made_.rend(); ++path) fs::remove(*path, ignored);
  }
  MadeFolders(const MadeFolders&) = delete;
  MadeFolders& operator=(const MadeFolders&) = delete;

  /// Makes `path`, whose parent is there; false where something has its name.
  bool make(const fs::path& path) {
    std::error_code reason;
    if (fs::create_directory(path, reason)) {
      made_.push_back(path);
      return true;
    }
    // Anything of that name counts as taken, also a file.
    if (reason && reason != std::errc::file_exists) throw cannot_make(path, reason);
    return false;
  }
  /// Makes `path` and its parents where they are not there.
  void make_all(const fs::path& path) {
    fs::path so_far;
    for (const fs::path& part : path) {
      so_far /= part;
      std::error_code reason;
      if (part.empty() || fs::is_directory(so_far, reason) || make(so_far)) continue;
      if (!fs::is_directory(so_far, reason)) {
        throw cannot_make(path, std::make_error_code(std::errc::not_a_directory));
      }
    }
  }
  void keep() { made_.clear(); }

 private:
  std::vector<fs::path> made_;
};

/// "20250131-235959"
std::string utc_name(std::chrono::system_clock::time_point now) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y%m%d-%H%M%S", &parts)};
}

IoError cannot_point(const fs::path& link, const std::string& reason) {
  return IoError(message(link.string(), ": cannot point this link at the new run: ", reason,
                         "; move away what has its name"));
}

bool can_be_link(const fs::path& path, std::error_code& reason) {
  const fs::file_type type = fs::symlink_status(path, reason).type();
  return type == fs::file_type::symlink || type == fs::file_type::not_found;
}

/// Throws IoError where there is something that is no link.
void check_link(const fs::path& link) {
  std::error_code reason;
  if (can_be_link(link, reason)) return;
  throw cannot_point(link, reason ? reason.message() : "it is no link");
}

/// Whether `name` is one that create gives by the time.
bool is_time_name(const std::string& name) {
  static const std::regex form("[0-9]{8}-[0-9]{6}(-[0-9]+)?");
  return std::regex_match(name, form);
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
    throw cannot_point(link, reason.message());
  }
}

std::shared_ptr<Descriptor> open_folder(const fs::path& path) try {
  return std::make_shared<Descriptor>(path, O_RDONLY | O_DIRECTORY, "open the folder");
} catch (const IoError& error) {
  throw IoError(message(error.what(), "; name a folder that you may read and write"));
}

}  // namespace

RunFolder::RunFolder(fs::path path) : path_(std::move(path)), lock_(open_folder(path_)) {
  if (!lock_->lock()) {
    throw IoError(
        message(path_.string(), ": another process trains in this folder; wait for it or end it"));
  }
}

RunFolder RunFolder::open(const fs::path& path) {
  constexpr std::string_view kAdvice = "; name the folder of a run, such as runs/latest";
  std::error_code reason;
  const fs::file_type type = fs::status(path, reason).type();
  if (type == fs::file_type::not_found) {
    throw IoError(message(path.string(), ": there is no such run folder", kAdvice));
  }
  if (type == fs::file_type::none) {
    throw IoError(
        message(path.string(), ": cannot be looked at (", reason.message(), ")", kAdvice));
  }
  if (type != fs::file_type::directory) {
    throw IoError(message(path.string(), ": this is no folder of a run, but a file", kAdvice));
  }
  // "runs/latest/" is the link as well.
  fs::path folder = path.has_filename() ? path : path.parent_path();
  if (fs::is_symlink(folder, reason)) {
    folder = folder.parent_path() / fs::read_symlink(folder, reason);
  }
  RunFolder run(folder);
  const fs::path link = folder.parent_path() / "latest";
  if (is_time_name(folder.filename().string()) && can_be_link(link, reason)) run.latest_ = link;
  return run;
}

RunFolder RunFolder::create(const fs::path& path, const fs::path& root,
                            std::chrono::system_clock::time_point now) {
  MadeFolders made;
  fs::path folder = path;
  if (!path.empty()) {
    made.make_all(path);
    std::error_code reason;
    const bool empty = fs::is_empty(path, reason);
    if (reason) throw cannot_make(path, reason);
    if (!empty) {
      throw IoError(message(path.string(),
                            ": this folder is not empty, and no run is overwritten; ",
                            "name another folder or remove it"));
    }
  } else {
    made.make_all(root);
    check_link(root / "latest");
    const fs::path name = root / utc_name(now);
    folder = name;
    for (int number = 2; !made.make(folder); ++number) folder = message(name.string(), "-", number);
  }
  RunFolder run(folder);
  check_writable(folder);
  if (path.empty()) run.latest_ = root / "latest";
  made.keep();
  return run;
}

void RunFolder::become_latest() {
  if (!latest_.empty()) point(std::exchange(latest_, {}), path_.filename());
}

}  // namespace lockstep
