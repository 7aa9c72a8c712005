// eval: the exact loss and accuracy of trained weights.
#include <algorithm>
#include <cmath>
#include <iostream>

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

void write_predictions(const std::filesystem::path& path, const Dataset& data,
                       const std::vector<int>& predicted) {
  std::string text = "sample,class,prediction\n";
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    text += message(i, ',', data.classes()[i], ',', predicted[i], '\n');
  }
  write_text_file(path, text);
}

}  // namespace

ExitCode run_eval(const EvalOptions& options) {
  ProgressBar bar(!options.output.quiet && !options.output.json);
  const Devices devices = parse_devices(options.devices);
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
  if (!options.predictions.empty()) write_predictions(options.predictions, data, predicted);
  if (options.output.json) {
    write_event(std::cout, eval_event(report));
  } else if (!options.output.quiet) {
    write_eval(std::cout, report);
  }
  return ExitCode::ok;
}

}  // namespace lockstep::apps
