// Going on with a run: which options it has, and the checkpoint that it goes on from.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/core/device.h"
#include "lockstep/io/checkpoint_folder.h"
#include "lockstep/io/run_folder.h"
#include "lockstep/parallel/sharding.h"

#include "apps/options.h"

namespace lockstep::apps {

/// A run that goes on.
struct ResumedRun {
  RunFolder folder;
  /// None when the run ended before its first: then it begins again.
  std::optional<FoundCheckpoint> from;
  /// The run's, with what may differ from the command line. Batch size and shards are the
  /// checkpoint's.
  TrainOptions options;
};

/// Opens the run that `options.resume` names. Throws IoError when there is none or none of its
/// checkpoints can be read; UsageError naming every option of the command line that the run has
/// another value of and that would make it another training.
[[nodiscard]] ResumedRun open_run(const TrainOptions& options);

/// The options of the training that a checkpoint was made in, with the checkpoint's batch size and
/// shards.
[[nodiscard]] TrainOptions options_of(const FoundCheckpoint& from);

/// Why training on from a checkpoint, by its options and on these devices, need not give the bits
/// that it would have had; empty: it gives them.
[[nodiscard]] std::vector<std::string> bit_differences(const Checkpoint& from,
                                                       const TrainOptions& options,
                                                       const Devices& devices,
                                                       const Sharding& sharding);

/// The options of a run that goes on: `run` as its config.json has them, `given` as they were
/// parsed from the command line. `weights` is named in the advice for what is refused.
[[nodiscard]] TrainOptions resumed_options(const Settings& run, const TrainOptions& given,
                                           const std::filesystem::path& weights);

}  // namespace lockstep::apps
