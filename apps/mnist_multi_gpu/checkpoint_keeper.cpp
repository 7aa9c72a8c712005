#include "apps/mnist_multi_gpu/checkpoint_keeper.h"

#include <utility>

#include "lockstep/core/error.h"

namespace lockstep::apps {

CheckpointKeeper::CheckpointKeeper(const std::filesystem::path& folder, int keep,
                                   std::int64_t to_come, const FoundCheckpoint* from,
                                   const Json& config, LogSink log)
    : folder_(folder, keep, from),
      to_come_(to_come),
      config_(json_text(config)),
      log_(std::move(log)) {
  folder_.check_room(to_come_);
}

void CheckpointKeeper::save(Checkpoint checkpoint) {
  checkpoint.config = config_;
  const bool first = folder_.newest().empty();
  try {
    folder_.save(std::move(checkpoint));
    trouble_.clear();
    if (first) folder_.check_room(to_come_);
  } catch (const IoError& error) {
    if (first) throw;
    skip(error.what());
  }
}

void CheckpointKeeper::skip(const std::string& obstacle) {
  trouble_ = obstacle;
  if (!log_) return;
  log_(LogLevel::warning, message("no checkpoint: ", trouble_, "; training goes on, the newest is ",
                                  folder_.newest().string()));
}

}  // namespace lockstep::apps
