// eval: the exact loss and accuracy of trained weights.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <string_view>

#include <unistd.h>

#include "lockstep/core/error.h"
#include "lockstep/io/files.h"
#include "lockstep/parallel/trainer.h"

#include "apps/json_events.h"
#include "apps/mnist_multi_gpu/commands.h"
#include "apps/progress_bar.h"
#include "apps/report.h"
#include "apps/setup.h"
#include "apps/text.h"

namespace lockstep::apps {

namespace {

/// The split that was asked for; the others are cut down to nothing where that saves work.
Dataset load_split(const EvalOptions& options, const std::string& dataset,
                   const std::filesystem::path& folder, ProgressBar& bar) {
  DataOptions data{.dataset = dataset,
                   .folder = folder,
                   .limit_train = 0,
                   .limit_validation = 0,
                   .limit_test = 0};
  auto& limit = options.split == "train"        ? data.limit_train
                : options.split == "validation" ? data.limit_validation
                                                : data.limit_test;
  limit = options.limit;
  const DatasetSplits splits = load_data(data, bar);
  if (options.split == "train") return splits.train;
  return options.split == "validation" ? splits.validation : splits.test;
}

std::vector<int> predict_all(const Model& model, const Dataset& data, ProgressBar& bar) {
  constexpr std::int64_t kChunk = 256;
  std::vector<int> predicted;
  for (std::int64_t first = 0; first < data.size(); first += kChunk) {
    const std::int64_t count = std::min(kChunk, data.size() - first);
    const std::vector<int> chunk = model.predict_classes(data.tensor(first, count));
    predicted.insert(predicted.end(), chunk.begin(), chunk.end());
    bar.show("classes", first + count, data.size());
  }
  return predicted;
}

Confusion confusion_of(const Dataset& data, const std::vector<int>& predicted) {
  const auto classes = static_cast<std::size_t>(data.class_count());
  Confusion confusion(classes, std::vector<std::int64_t>(classes));
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    ++confusion[static_cast<std::size_t>(data.classes()[i])]
               [static_cast<std::size_t>(predicted[i])];
  }
  return confusion;
}

constexpr std::string_view kPredictionsHeader = "sample,class,prediction\n";

/// Where the predictions go: links are followed. Throws IoError, before there is anything to write,
/// where they cannot go or would replace something else than predictions.
std::filesystem::path predictions_file(const std::filesystem::path& path) {
  constexpr const char* kElse = "; name another file with --predictions";
  constexpr int kMostLinks = 40;  // as the kernel follows
  const auto refuse = [&](const auto&... why) {
    throw IoError(message(path.string(), ": ", why..., kElse));
  };
  std::error_code problem;
  // Link by link: its last one may lead to a file that is not there yet.
  std::filesystem::path file = std::filesystem::absolute(path);
  for (int links = 0; std::filesystem::is_symlink(file); ++links) {
    if (links == kMostLinks) refuse("is a link that leads nowhere");
    file = file.parent_path() / std::filesystem::read_symlink(file);
  }
  const std::filesystem::file_status status = std::filesystem::status(file, problem);
  if (std::filesystem::is_regular_file(status)) {
    std::string begin(kPredictionsHeader.size(), ' ');
    std::ifstream there(file, std::ios::binary);
    there.read(begin.data(), static_cast<std::streamsize>(begin.size()));
    const bool empty = there.gcount() == 0;
    if (!empty && begin != kPredictionsHeader)
      refuse("is there and holds something else than predictions, and nothing else is overwritten");
  } else if (std::filesystem::is_directory(status)) {
    refuse("is a folder");
  } else if (!std::filesystem::exists(status)) {
    const std::filesystem::path folder = file.parent_path();
    if (!std::filesystem::is_directory(folder)) refuse("there is no folder ", folder.string());
    if (access(folder.c_str(), W_OK) != 0) refuse("no file can be made in ", folder.string());
  }
  return file;
}

void write_predictions(const std::filesystem::path& file, const Dataset& data,
                       const std::vector<int>& predicted) {
  std::string text(kPredictionsHeader);
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    text += message(i, ',', data.classes()[i], ',', predicted[i], '\n');
  }
  if (!std::filesystem::exists(file) || std::filesystem::is_regular_file(file)) {
    write_text_file(file, text);
    return;
  }
  std::ofstream device(file);  // or a pipe
  device << text << std::flush;
  if (!device) throw IoError(message(file.string(), ": the predictions cannot be written"));
}

}  // namespace

ExitCode run_eval(const EvalOptions& options) {
  ProgressBar bar(!options.output.quiet && !options.output.json);
  const Devices devices = parse_devices(options.devices);
  const bool wants_predictions = !options.predictions.empty();
  const auto predictions =
      wants_predictions ? predictions_file(options.predictions) : std::filesystem::path();
  TrainedModel trained = load_trained(options.weights, options.model);
  // The run's data folder goes with the run's data set only.
  const bool runs_data = options.dataset.empty() || options.dataset == trained.dataset;
  const std::string dataset = !options.dataset.empty()   ? options.dataset
                              : !trained.dataset.empty() ? trained.dataset
                                                         : "mnist";
  const std::filesystem::path folder = !options.folder.empty() ? options.folder
                                       : runs_data             ? trained.folder
                                                               : std::filesystem::path();
  const Dataset data = load_split(options, dataset, folder, bar);
  if (data.size() == 0) {
    throw DataError(message("eval: the split '", options.split, "' of ", data.name(), " is empty"));
  }

  World world({.devices = devices, .log = stderr_log(options.output.quiet, bar)});
  Trainer trainer(world, trained.model, SoftmaxCrossEntropy{}, Adam{});
  trainer.on_progress(
      [&](const Progress& progress) { bar.show("evaluation", progress.done, progress.total); });
  const EvalStats stats = trainer.evaluate(data);
  EvalReport report{.weights = trained.weights,
                    .dataset = dataset,
                    .split = options.split,
                    .devices = devices_text(devices, trainer.replicas()),
                    .stats = stats,
                    .confusion = {}};
  if (!std::isfinite(report.stats.loss)) {
    throw NonFiniteError(message("eval: the loss is not finite; ", trained.weights.string(),
                                 " or the data hold values that are not, train again"));
  }
  const std::vector<int> predicted = predict_all(trained.model, data, bar);
  report.confusion = confusion_of(data, predicted);
  bar.erase();
  if (wants_predictions) write_predictions(predictions, data, predicted);
  if (options.output.json) {
    write_event(std::cout, eval_event(report));
  } else if (!options.output.quiet) {
    write_eval(std::cout, report);
  }
  return ExitCode::ok;
}

}  // namespace lockstep::apps
