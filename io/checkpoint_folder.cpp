#include "lockstep/io/checkpoint_folder.h"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/core/joined.h"
#include "lockstep/core/sha256.h"
#include "lockstep/io/files.h"
#include "lockstep/io/manifest.h"

namespace lockstep {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBegin = "step-";

/// The step, and which of several with that step.
using Number = std::pair<std::uint64_t, std::uint64_t>;

std::string name_of(const Number& number) {
  std::string digits = std::to_string(number.first);
  if (digits.size() < 8) digits.insert(0, 8 - digits.size(), '0');
  return message(kBegin, digits, number.second == 1 ? "" : message("-", number.second));
}

/// The number of a name that name_of makes.
std::optional<Number> number_of(const std::string& name) {
  if (!name.starts_with(kBegin)) return {};
  Number number{0, 1};
  const char* end = name.data() + name.size();
  auto parsed = std::from_chars(name.data() + kBegin.size(), end, number.first);
  if (parsed.ec == std::errc{} && parsed.ptr != end && *parsed.ptr == '-') {
    parsed = std::from_chars(parsed.ptr + 1, end, number.second);
  }
  if (parsed.ec != std::errc{} || name != name_of(number)) return {};
  return number;
}

/// The checkpoints of a folder by their names, oldest first.
std::vector<std::pair<Number, fs::path>> numbered_in(const fs::path& folder) {
  std::vector<std::pair<Number, fs::path>> found;
  std::error_code reason;
  for (fs::directory_iterator entry(folder, reason), end; !reason && entry != end;
       entry.increment(reason)) {
    if (const auto number = number_of(entry->path().filename().string())) {
      found.emplace_back(*number, entry->path());
    }
  }
  if (reason && reason != std::errc::no_such_file_or_directory) {
    throw IoError(message(folder.string(), ": cannot list it: ", reason.message()));
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string manifest_of(const fs::path& checkpoint) {
  return read_file(checkpoint / "manifest.json");
}

bool is_among(const std::vector<UnreadCheckpoint>& unread, const fs::path& path) {
  return std::any_of(unread.begin(), unread.end(), [&](const UnreadCheckpoint& checkpoint) {
    return checkpoint.path.filename() == path.filename();
  });
}

}  // namespace

std::vector<fs::path> checkpoints_in(const fs::path& folder) {
  std::vector<fs::path> paths;
  for (auto& [number, path] : numbered_in(folder)) paths.push_back(std::move(path));
  return paths;
}

std::optional<FoundCheckpoint> newest_checkpoint(const fs::path& folder) {
  auto candidates = numbered_in(folder);
  std::vector<std::string> damaged;
  std::vector<UnreadCheckpoint> unread;
  for (auto candidate = candidates.rbegin(); candidate != candidates.rend(); ++candidate) {
    try {
      Checkpoint checkpoint = load_checkpoint(candidate->second);
      const std::string manifest = manifest_of(candidate->second);
      return FoundCheckpoint{candidate->second, sha256(std::as_bytes(std::span(manifest))),
                             std::move(checkpoint), std::move(damaged), std::move(unread)};
    } catch (const ReadError& error) {
      unread.push_back({candidate->second, error.what()});
    } catch (const IoError& error) {
      damaged.emplace_back(error.what());
    }
  }
  if (candidates.empty()) return {};
  for (const UnreadCheckpoint& checkpoint : unread) damaged.push_back(checkpoint.reason);
  throw IoError(message(folder.string(), ": none of the ", candidates.size(),
                        " checkpoints can be read: ", joined(damaged, "; ")));
}

CheckpointFolder::CheckpointFolder(fs::path folder, int keep, const FoundCheckpoint* from)
    : folder_(std::move(folder)), keep_(keep) {
  if (keep < 1) throw UsageError(message("checkpoints: keep is ", keep, ", want 1 or more"));
  std::error_code reason;
  fs::create_directories(folder_, reason);
  if (reason) {
    throw IoError(message(folder_.string(), ": cannot make this folder: ", reason.message(),
                          "; name a place that you may write to"));
  }
  remove_leftovers(folder_);
  check_writable(folder_);
  if (from != nullptr) {
    newest_ = from->path;
    at_ = from->checkpoint.step;
    parent_ = {from->path.filename().string(), from->manifest_sha256};
  }
  set_aside_newer(from);
  find_kept(from);
}

/// Sets aside those newer than `from`; all where that is null.
void CheckpointFolder::set_aside_newer(const FoundCheckpoint* from) {
  const auto limit = number_of(newest_.filename().string());
  for (const auto& [number, path] : numbered_in(folder_)) {
    if (limit && number <= *limit) continue;
    if (from != nullptr && is_among(from->unread, path)) continue;
    const std::string name = "aside-" + path.filename().string();
    fs::path target = folder_ / name;
    std::error_code reason;
    for (int more = 2; fs::exists(target, reason); ++more) {
      target = folder_ / message(name, "-again-", more);
    }
    fs::rename(path, target, reason);
    if (reason) {
      throw IoError(message(path.string(), ": cannot set it aside: ", reason.message()));
    }
  }
}

/// Those up to `from` whose turn to be removed comes, and the best of them.
void CheckpointFolder::find_kept(const FoundCheckpoint* from) {
  if (from == nullptr) return;
  for (const auto& [number, path] : numbered_in(folder_)) {
    if (is_among(from->unread, path)) continue;
    try {
      const Checkpoint old = parse_manifest(manifest_of(path), path.string());
      if (old.is_best() && old.fit.best_epoch == from->checkpoint.fit.best_epoch) best_ = path;
    } catch (const ReadError&) {
      continue;                 // it may be the best
    } catch (const IoError&) {  // NOLINT(bugprone-empty-catch): a damaged one is not the best
    }
    kept_.push_back(path);
  }
}

fs::path CheckpointFolder::save(Checkpoint checkpoint) {
  const StepState& step = checkpoint.step;
  if (!newest_.empty() && at_.step == step.step && at_.epoch == step.epoch &&
      at_.step_in_epoch == step.step_in_epoch) {
    return newest_;
  }
  Number number{step.step, 1};
  std::error_code ignored;
  while (fs::exists(folder_ / name_of(number), ignored)) ++number.second;
  fs::path path = folder_ / name_of(number);
  checkpoint.parent = parent_;
  const std::string digest = save_checkpoint(checkpoint, path);
  parent_ = {path.filename().string(), digest};
  at_ = step;
  newest_ = path;
  if (checkpoint.is_best()) best_ = path;
  kept_.push_back(path);
  forget_old();
  return path;
}

void CheckpointFolder::check_room(std::int64_t to_come) const {
  if (newest_.empty()) return;
  std::uintmax_t bytes = 0;
  std::error_code reason;
  for (fs::directory_iterator file(newest_, reason), end; !reason && file != end;
       file.increment(reason)) {
    bytes += file->file_size(reason);
  }
  const fs::space_info room = fs::space(folder_, reason);
  if (reason || room.capacity == 0) return;
  // Those kept, the best, and one that is being written.
  const std::uintmax_t most = static_cast<std::uintmax_t>(keep_) + 2;
  const std::uintmax_t missing =
      std::min<std::uintmax_t>(most - std::min<std::uintmax_t>(most, kept_.size()),
                               static_cast<std::uintmax_t>(std::max<std::int64_t>(to_come, 0)));
  if (bytes == 0 || missing <= room.available / bytes) return;
  throw IoError(message(folder_.string(), ": ", missing, " more checkpoints of ", bytes,
                        " bytes do not fit the ", room.available,
                        " bytes that are free there; keep fewer or make room"));
}

void CheckpointFolder::forget_old() {
  std::size_t surplus = kept_.size() - std::min(kept_.size(), static_cast<std::size_t>(keep_));
  for (std::size_t i = 0; i < surplus;) {
    if (kept_[i] == best_) {
      ++i;
      continue;
    }
    try {
      remove_folder(kept_[i]);
    } catch (const IoError&) {  // what cannot be removed today is tried again after the next one
      ++i;
      continue;
    }
    kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(i));
    --surplus;
  }
}

}  // namespace lockstep
