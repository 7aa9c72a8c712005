// The figures of every epoch as files and as JSON text.
#pragma once

#include <limits>
#include <memory>
#include <string>

#include "lockstep/core/stats.h"
#include "lockstep/io/run_folder.h"

namespace lockstep {

/// One JSON object without a line break: {"event":"epoch","epoch":0,"lr":...}. Its keys are the
/// columns of metrics.csv in their order. Numbers read back to the same bits; what is not finite,
/// and validation where there was none, is null.
[[nodiscard]] std::string epoch_json(const EpochStats& epoch);

/// Appends every epoch to metrics.csv and metrics.jsonl of a run; each row is on the disk when
/// `add` returns.
///
/// Columns: epoch (from 0), lr (of its first step), train_loss = data_loss + reg_loss, data_loss
/// (mean over the samples, each before its update), reg_loss (the L2 term), train_loss_ema (moving
/// average 0.9 over steps), train_accuracy, val_loss, val_accuracy (empty without validation),
/// steps, samples, train_seconds, eval_seconds, seconds, samples_per_second. Accuracies are
/// fractions. All but the last four are the same for the same run.
class MetricsWriter {
 public:
  /// Opens the files, making them where they are not there, for rows behind those that they have.
  /// Rows of epochs from `next_epoch` on, which a run that goes on from a checkpoint will have
  /// again, and what is no whole row are taken out first. Throws IoError.
  explicit MetricsWriter(const RunFolder& folder, int next_epoch = std::numeric_limits<int>::max());
  ~MetricsWriter();
  MetricsWriter(const MetricsWriter&) = delete;
  MetricsWriter& operator=(const MetricsWriter&) = delete;

  /// Throws IoError, for example when the disk is full; a row that was not written whole is taken
  /// back.
  void add(const EpochStats& epoch);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
