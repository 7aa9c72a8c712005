// Writes a training's checkpoints while it goes on.
#pragma once

#include <cstdint>
#include <string>

#include "lockstep/core/log.h"
#include "lockstep/io/checkpoint_folder.h"

#include "apps/json_events.h"

namespace lockstep::apps {

class CheckpointKeeper {
 public:
  /// `config` goes into every checkpoint. Whether the checkpoints `to_come`, of which `keep` stay,
  /// have room is looked at as soon as there is one: here for a run that goes on (`from`), else
  /// when the first is saved. Throws IoError.
  CheckpointKeeper(const std::filesystem::path& folder, int keep, std::int64_t to_come,
                   const FoundCheckpoint* from, const Json& config, LogSink log);

  /// Saves one. The first of a new run must go well, else IoError: nothing is lost then. A later
  /// one that cannot be written is a warning, and training goes on.
  void save(Checkpoint checkpoint);

  /// A checkpoint that must not be saved now, because of `obstacle`: as one that cannot be written.
  void skip(const std::string& obstacle);

  /// Why the last one could not be written; empty when it was.
  [[nodiscard]] const std::string& trouble() const { return trouble_; }
  [[nodiscard]] const CheckpointFolder& folder() const { return folder_; }

 private:
  CheckpointFolder folder_;
  std::int64_t to_come_;
  std::string config_;
  LogSink log_;
  std::string trouble_;
};

}  // namespace lockstep::apps
