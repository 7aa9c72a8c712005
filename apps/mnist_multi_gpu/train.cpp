// train: the article's experiment and everything that its options make of it.
#include <chrono>
#include <iostream>
#include <optional>

#include "lockstep/config.h"
#include "lockstep/core/error.h"
#include "lockstep/io/files.h"
#include "lockstep/io/metrics.h"
#include "lockstep/io/run_folder.h"
#include "lockstep/io/weights.h"
#include "lockstep/layers/zoo.h"
#include "lockstep/parallel/trainer.h"

#include "apps/interrupt.h"
#include "apps/json_events.h"
#include "apps/mnist_multi_gpu/commands.h"
#include "apps/progress_bar.h"
#include "apps/report.h"
#include "apps/setup.h"
#include "apps/text.h"

namespace lockstep::apps {

namespace {

using Clock = std::chrono::steady_clock;

void check_precision(const TrainOptions& options, const Devices& devices) {
  if (options.precision == "tf32" && devices.list.front().kind == DeviceKind::cpu) {
    throw UsageError(
        "--precision tf32: TF32 is arithmetic of GPUs, and this training runs on the CPU; use "
        "--precision fp32");
  }
}

Residence residence_of(const TrainOptions& options) {
  if (options.data_resident == "auto") return Residence::automatic;
  return options.data_resident == "on" ? Residence::resident : Residence::streamed;
}

Model initial_model(const TrainOptions& options, const Shape& sample) {
  Model model(zoo::by_name(options.model), sample, options.seed);
  if (!options.init_from.empty()) load_weights(model, options.init_from);
  return model;
}

TrainReport describe(const TrainOptions& options, const Devices& devices, const Sharding& sharding,
                     const DatasetSplits& data, const Model& model) {
  TrainReport report{.version = kVersion,
                     .devices = devices_text(devices, sharding.replicas),
                     .device_names = {},
                     .precision = options.precision,
                     .dataset = options.data.dataset,
                     .train = data.train.size(),
                     .validation = data.validation.size(),
                     .test = data.test.size(),
                     .model = options.model,
                     .model_table = model.describe(),
                     .optimizer = make_optimizer(options).describe(),
                     .schedule = make_schedule(options).describe(),
                     .batch = batch_text(sharding),
                     .steps_per_epoch = steps_per_epoch(data.train.size(), sharding.batch_size,
                                                        options.last_batch),
                     .reduce = options.reduce == Reduce::fast ? "fast" : "invariant",
                     .seed = options.seed,
                     .run_folder = {}};
  if (options.data.dataset != "synthetic") {
    report.dataset += " from " + data_folder(options.data).string();
  }
  for (int rank = 0; rank < sharding.replicas; ++rank) {
    report.device_names.push_back(device_text(devices.list[static_cast<std::size_t>(rank)]));
  }
  return report;
}

/// Prints what happens while a trainer works, in the way that was asked for.
class Narrator {
 public:
  Narrator(const TrainOptions& options, ProgressBar& bar)
      : options_(options),
        bar_(bar),
        schedule_(make_schedule(options)),
        base_rate_(make_optimizer(options).base_lr()),
        human_(!options.output.json && !options.output.quiet) {}

  void start(const TrainReport& report, const Json& config) {
    steps_per_epoch_ = report.steps_per_epoch;
    if (human_) write_train_start(std::cout, report);
    if (options_.output.json) write_event(std::cout, start_event(config));
  }

  void progress(const Progress& progress) {
    const bool training = progress.phase == Progress::Phase::training;
    if (training) open_epoch(progress.epoch);
    const std::string label =
        message(training ? "epoch " : "evaluation ", training ? message(progress.epoch) : "");
    bar_.show(label, progress.done, progress.total,
              training ? "loss " + fixed(progress.loss_ema, 4) : "");
  }

  void epoch(const EpochStats& epoch) {
    open_epoch(epoch.epoch);
    bar_.erase();
    if (human_) write_epoch_end(std::cout, epoch);
    if (options_.output.json) write_event(std::cout, epoch_event(epoch));
  }

  void end(const TrainEnd& end) {
    bar_.erase();
    if (human_) write_train_end(std::cout, end);
    if (options_.output.json) write_event(std::cout, result_event(end));
  }

 private:
  /// The line with the learning rate comes before the figures of its epoch, as in the article.
  void open_epoch(int epoch) {
    if (epoch == open_epoch_) return;
    open_epoch_ = epoch;
    bar_.erase();
    if (!human_) return;
    const double rate =
        schedule_.rate(base_rate_, {.epoch = epoch,
                                    .step = epoch * steps_per_epoch_,
                                    .total_steps = options_.epochs * steps_per_epoch_});
    write_epoch_start(std::cout, epoch, rate);
  }

  const TrainOptions& options_;
  ProgressBar& bar_;
  Schedule schedule_;
  double base_rate_ = 0;
  bool human_ = false;
  std::int64_t steps_per_epoch_ = 0;
  int open_epoch_ = -1;
};

void save_weights_if_possible(const Trainer& trainer, const std::filesystem::path& weights) {
  try {
    save_weights(trainer.model(), weights);
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): the first error is the one to tell
  }
}

/// Trains, and leaves the weights in `weights` whatever ends it, short of a second signal.
FitResult fit_and_save(const TrainOptions& options, Trainer& trainer, const DatasetSplits& data,
                       const std::filesystem::path& weights) {
  const InterruptGuard guard(trainer);
  FitResult result;
  try {
    result = trainer.fit(data.train, data.validation,
                         {.epochs = options.epochs,
                          .batch_size = options.batch_size,
                          .batch_per_replica = options.batch_per_replica,
                          .last_batch = options.last_batch,
                          .early_stopping = options.early_stopping,
                          .restore_best = options.restore_best});
  } catch (const NonFiniteError& error) {
    save_weights(trainer.model(), weights);
    throw NonFiniteError(message(error.what(), ". Weights so far: ", weights.string()));
  } catch (const DivergenceError&) {
    throw;  // nobody knows whose weights are right
  } catch (const Error&) {
    // Metrics that cannot be written, say: what was learned is not lost with them.
    if (trainer.step() > 0) save_weights_if_possible(trainer, weights);
    throw;
  }
  save_weights(trainer.model(), weights);
  // A signal after the last step asks for an end all the same.
  result.stop_requested = result.stop_requested || guard.interrupted();
  return result;
}

}  // namespace

ExitCode run_train(const TrainOptions& options) {
  const Clock::time_point begun = Clock::now();
  ProgressBar bar(!options.output.quiet && !options.output.json);
  const Devices devices = parse_devices(options.devices);
  check_precision(options, devices);
  // What cannot work is refused before anything is read.
  const Sharding sharding = make_sharding(devices, options.reduce, options.shards,
                                          options.batch_size, options.batch_per_replica);
  const LogSink log = stderr_log(options.output.quiet, bar);
  if (log && !devices.notice.empty()) log(LogLevel::warning, devices.notice);
  const DatasetSplits data = load_data(options.data, bar);
  Model model = initial_model(options, data.train.sample_shape());
  TrainReport report = describe(options, devices, sharding, data, model);
  if (report.steps_per_epoch == 0) {
    throw UsageError(message("--last-batch drop: the ", report.train,
                             " training samples are less than the batch of ", sharding.batch_size,
                             "; use a smaller --batch-size or keep the last batch"));
  }

  const RunFolder folder = RunFolder::create(options.out);
  report.run_folder = folder.path();
  const Json config = config_json(options, report, sharding);
  write_text_file(folder.file("config.json"), config.dump(2) + '\n');
  MetricsWriter metrics(folder);
  Narrator narrator(options, bar);
  narrator.start(report, config);

  World world({.devices = devices, .log = log, .pin_threads = options.pin});
  Trainer trainer(
      world, model, SoftmaxCrossEntropy{}, make_optimizer(options),
      {.seed = options.seed,
       .reduce = options.reduce,
       .shards = options.shards,
       .bucket_bytes = options.bucket_bytes,
       .schedule = make_schedule(options),
       .l2 = static_cast<float>(options.l2),
       .clip_norm = static_cast<float>(options.clip_norm),
       .precision = options.precision == "tf32" ? Precision::tf32 : Precision::fp32,
       .residence = residence_of(options),
       .graph = !options.no_graph,
       .fuse = !options.no_fuse,
       .on_nonfinite = options.on_nonfinite == "skip" ? OnNonfinite::skip : OnNonfinite::stop,
       .compare_every = options.compare_every});
  trainer.on_progress([&](const Progress& progress) { narrator.progress(progress); });
  trainer.on_epoch([&](const EpochStats& epoch) {
    metrics.add(epoch);
    narrator.epoch(epoch);
  });
  const std::filesystem::path weights = folder.file("weights.safetensors");
  const FitResult fit = fit_and_save(options, trainer, data, weights);

  TrainEnd end{.interrupted = fit.stop_requested,
               .stopped_early = fit.stopped_early,
               .epochs = fit.epochs,
               .best_epoch = fit.best_epoch,
               .restored_best = options.restore_best,
               .test = {},
               .run_folder = folder.path(),
               .weights = weights};
  if (!end.interrupted && data.test.size() > 0) end.test = trainer.evaluate(data.test);
  end.seconds = std::chrono::duration<double>(Clock::now() - begun).count();
  narrator.end(end);
  return end.interrupted ? ExitCode::interrupted : ExitCode::ok;
}

}  // namespace lockstep::apps
