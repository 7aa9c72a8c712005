// eval: the exact loss and accuracy of trained weights.
#include <algorithm>
#include <cmath>
#include <iostream>

#include "lockstep/core/error.h"
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

Confusion confusion_of(const Model& model, const Dataset& data, ProgressBar& bar) {
  constexpr std::int64_t kChunk = 256;
  const auto classes = static_cast<std::size_t>(data.class_count());
  Confusion confusion(classes, std::vector<std::int64_t>(classes));
  for (std::int64_t first = 0; first < data.size(); first += kChunk) {
    const std::int64_t count = std::min(kChunk, data.size() - first);
    const std::vector<int> predicted = model.predict_classes(data.tensor(first, count));
    for (std::int64_t i = 0; i < count; ++i) {
      const auto truth = static_cast<std::size_t>(data.classes()[first + i]);
      ++confusion[truth][static_cast<std::size_t>(predicted[static_cast<std::size_t>(i)])];
    }
    bar.show("classes", first + count, data.size());
  }
  return confusion;
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
  report.confusion = confusion_of(trained.model, data, bar);
  bar.erase();
  if (options.output.json) {
    write_event(std::cout, eval_event(report));
  } else if (!options.output.quiet) {
    write_eval(std::cout, report);
  }
  return ExitCode::ok;
}

}  // namespace lockstep::apps
