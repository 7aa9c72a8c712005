// What people read: the lines that training, evaluation, parity and scaling print. Takes plain
// figures and a stream, so that tests can feed it fixed numbers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "lockstep/core/stats.h"

namespace lockstep::apps {

/// How a run goes on from a checkpoint.
struct ResumeReport {
  std::filesystem::path checkpoint{};  ///< empty: the run ended before its first
  std::int64_t step = 0;
  int epoch = 0;
  /// Why the results may differ in their last bits from those of a run that was not interrupted;
  /// empty: they do not.
  std::vector<std::string> bit_differences{};
};

/// Facts about a training that are known before it starts.
struct TrainReport {
  std::string version;
  std::string devices;                    ///< "2 CPU replicas (avx512)"
  std::vector<std::string> device_names;  ///< one a replica
  std::string precision;
  std::string dataset;  ///< name, and where it is read
  std::int64_t train = 0;
  std::int64_t validation = 0;
  std::int64_t test = 0;
  std::string model;
  std::string model_table;  ///< Sequential::describe
  std::string optimizer;
  std::string schedule;
  std::string batch;  ///< batch_text
  std::int64_t steps_per_epoch = 0;
  std::string reduce;
  std::uint64_t seed = 0;
  std::filesystem::path run_folder;
  std::optional<ResumeReport> resumed{};  ///< none: a new run
};

void write_train_start(std::ostream& out, const TrainReport& report);
/// The rule and the line that open an epoch.
void write_epoch_start(std::ostream& out, int epoch, double learning_rate);
void write_epoch_end(std::ostream& out, const EpochStats& epoch);

struct TrainEnd {
  bool interrupted = false;
  bool stopped_early = false;
  int epochs = 0;
  int best_epoch = -1;
  bool restored_best = false;
  std::optional<EvalStats> test;
  double seconds = 0;  ///< of the whole command
  std::filesystem::path run_folder;
  std::filesystem::path weights;
  std::filesystem::path checkpoint{};       ///< the newest
  std::filesystem::path best_checkpoint{};  ///< by validation; empty without
};

void write_train_end(std::ostream& out, const TrainEnd& end);

/// Rows are true classes, columns predictions.
using Confusion = std::vector<std::vector<std::int64_t>>;

struct EvalReport {
  std::filesystem::path weights;
  std::string dataset;
  std::string split;
  std::string devices;
  EvalStats stats;
  Confusion confusion;
};

void write_eval(std::ostream& out, const EvalReport& report);

/// One line a row of 28 values in [0, 1], darkest as blank.
[[nodiscard]] std::string preview(const std::vector<float>& pixels, std::size_t width);

}  // namespace lockstep::apps
