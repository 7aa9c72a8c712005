// From options to the library's objects; what several commands need.
#pragma once

#include <filesystem>
#include <string>

#include "lockstep/core/log.h"
#include "lockstep/data/dataset.h"
#include "lockstep/layers/model.h"
#include "lockstep/optim/optimizer.h"
#include "lockstep/optim/schedule.h"
#include "lockstep/parallel/trainer.h"

#include "apps/options.h"
#include "apps/progress_bar.h"

namespace lockstep::apps {

/// The folder of IDX files that `data` means.
[[nodiscard]] std::filesystem::path data_folder(const DataOptions& data);

/// Reads or draws the data, cut down to the limits.
[[nodiscard]] DatasetSplits load_data(const DataOptions& data, ProgressBar& bar);

[[nodiscard]] Optimizer make_optimizer(const TrainOptions& options);
[[nodiscard]] Schedule make_schedule(const TrainOptions& options);
[[nodiscard]] TrainerOptions make_trainer_options(const TrainOptions& options);

/// Notices and warnings on stderr, below an erased bar; nothing when `quiet`.
[[nodiscard]] LogSink stderr_log(bool quiet, ProgressBar& bar);

/// Exactly `count` replicas of `kind`, "cpu" or "cuda": CPU cores, or the first GPUs. Throws
/// DeviceError when there are not so many GPUs.
[[nodiscard]] Devices replicas_of(const std::string& kind, int count);

/// What a kind of device computes with, for people: "avx512", "NVIDIA H200".
[[nodiscard]] std::string processor_text(const std::string& kind);

/// Weights that eval and predict work with, and what the run that made them says about itself.
struct TrainedModel {
  Model model;
  std::filesystem::path weights;
  std::string model_name;
  /// Empty when neither config.json nor a checkpoint's manifest.json lies beside the weights.
  std::string dataset;
  std::filesystem::path folder;  ///< of the data; empty likewise
};

/// Key in the metadata of a run's weights.safetensors for the number of steps behind them.
inline constexpr const char* kStepKey = "step";

/// The weights file that `path` is or holds: a run's or checkpoint's weights.safetensors, or those
/// of the newest checkpoint of a run that was cut: one that has no such file, or one of fewer steps
/// from the end before it was resumed. Throws IoError that tells to name another with `option`.
[[nodiscard]] std::filesystem::path weights_file(const std::filesystem::path& path,
                                                 const char* option);

/// `path` is what weights_file takes; `model_name` overrides what its config.json says, and
/// is "article" where there is neither.
[[nodiscard]] TrainedModel load_trained(const std::filesystem::path& path,
                                        const std::string& model_name);

/// Shape of a sample of the MNIST family: what the models of the zoo take.
[[nodiscard]] Shape digit_shape();

}  // namespace lockstep::apps
