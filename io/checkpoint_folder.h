// The checkpoints of one run: which are kept, and which one to go on from.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/io/checkpoint.h"

namespace lockstep {

/// A checkpoint that may be whole but cannot be read now.
struct UnreadCheckpoint {
  std::filesystem::path path;
  std::string reason;  ///< names the file
};

/// A checkpoint of a run that can be read.
struct FoundCheckpoint {
  std::filesystem::path path;  ///< "runs/x/checkpoints/step-00000430"
  std::string manifest_sha256;
  Checkpoint checkpoint;
  /// What is wrong with each newer one whose content is wrong.
  std::vector<std::string> damaged;
  std::vector<UnreadCheckpoint> unread;  ///< newer ones that cannot be read
};

/// The newest whole checkpoint in `folder` ("runs/x/checkpoints"); none when it has no checkpoint
/// or is not there. Throws IoError when it has checkpoints and none can be read.
[[nodiscard]] std::optional<FoundCheckpoint> newest_checkpoint(const std::filesystem::path& folder);

/// The checkpoints in `folder` by their names, oldest first, whole or not; none when it is not
/// there.
[[nodiscard]] std::vector<std::filesystem::path> checkpoints_in(
    const std::filesystem::path& folder);

/// Writes checkpoints into a folder, each as `step-` and its step, and removes those that are no
/// longer kept. No checkpoint is ever overwritten. One process at a time (RunFolder sees to that).
class CheckpointFolder {
 public:
  /// Makes the folder when it is not there, removes what a process that ended in the middle has
  /// left, and checks that everything that saving does can be done there. Keeps the last `keep`
  /// checkpoints, at least 1, and the best by validation. `from` is the one that training goes on
  /// from: newer ones, damaged or not, are set aside as `aside-step-...`; but those that it
  /// names as unread stay, as do older ones that cannot be read. Throws IoError, UsageError for
  /// `keep` below 1.
  explicit CheckpointFolder(std::filesystem::path folder, int keep = 3,
                            const FoundCheckpoint* from = nullptr);

  /// Writes a checkpoint, whose `parent` becomes the one written or gone on from before; then
  /// removes those that are not kept. Does nothing when that one stands at the same place of
  /// training. Returns its path. Throws IoError: then all is as before.
  std::filesystem::path save(Checkpoint checkpoint);

  /// Throws IoError when the file system has less free room than the checkpoints that are still to
  /// come, at most `to_come`, will take, as large as the newest one. Does nothing without one, or
  /// where the system does not say how much room there is.
  void check_room(std::int64_t to_come) const;

  /// Empty without one.
  [[nodiscard]] const std::filesystem::path& newest() const { return newest_; }
  [[nodiscard]] const std::filesystem::path& best() const { return best_; }

 private:
  void set_aside_newer(const FoundCheckpoint* from);
  void find_kept(const FoundCheckpoint* from);
  void forget_old();

  std::filesystem::path folder_;
  int keep_;
  std::vector<std::filesystem::path> kept_;  ///< oldest first
  std::filesystem::path newest_;
  std::filesystem::path best_;
  StepState at_;  ///< where the newest stands
  CheckpointParent parent_;
};

}  // namespace lockstep
