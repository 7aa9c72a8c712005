// train: the article's experiment and everything that its options make of it.
#include <chrono>
#include <limits>
#include <optional>
#include <utility>

#include "lockstep/config.h"
#include "lockstep/core/error.h"
#include "lockstep/core/joined.h"
#include "lockstep/io/files.h"
#include "lockstep/io/run_folder.h"
#include "lockstep/io/weights.h"
#include "lockstep/layers/zoo.h"
#include "lockstep/parallel/trainer.h"

#include "apps/interrupt.h"
#include "apps/json_events.h"
#include "apps/mnist_multi_gpu/checkpoint_keeper.h"
#include "apps/mnist_multi_gpu/commands.h"
#include "apps/mnist_multi_gpu/metrics_keeper.h"
#include "apps/mnist_multi_gpu/narrator.h"
#include "apps/mnist_multi_gpu/resume.h"
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

Model initial_model(const TrainOptions& options, const Shape& sample) {
  Model model(zoo::by_name(options.model), sample, options.seed);
  if (!options.init_from.empty()) {
    load_weights(model, weights_file(options.init_from, "--init-from"));
  }
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

void warn_of_newer(const FoundCheckpoint& from, const LogSink& log) {
  std::vector<std::string> reasons = from.damaged;
  for (const UnreadCheckpoint& unread : from.unread) {
    reasons.push_back(message(unread.reason, ", it stays where it is"));
  }
  if (reasons.empty() || !log) return;
  log(LogLevel::warning,
      message(joined(reasons, "; "), "; going on from the one before, ", from.path.string()));
}

ResumeReport describe_resume(const TrainOptions& options, const FoundCheckpoint* from,
                             const Devices& devices, const Sharding& sharding) {
  if (from == nullptr) return {};
  const StepState& step = from->checkpoint.step;
  return {.checkpoint = from->path,
          .step = static_cast<std::int64_t>(step.step),
          .epoch = static_cast<int>(step.epoch),
          .bit_differences = bit_differences(from->checkpoint, options, devices, sharding)};
}

/// With the step, by which weights_file tells them from a checkpoint's.
void save_trained(const Trainer& trainer, const std::filesystem::path& weights) {
  save_weights(trainer.model(), weights, {{kStepKey, std::to_string(trainer.step())}});
}

void save_weights_if_possible(const Trainer& trainer, const std::filesystem::path& weights) {
  try {
    save_trained(trainer, weights);
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
    save_trained(trainer, weights);
    throw NonFiniteError(message(error.what(), ". Weights so far: ", weights.string()));
  } catch (const DivergenceError&) {
    throw;  // nobody knows whose weights are right
  } catch (const Error&) {
    // Metrics that cannot be written, say: what was learned is not lost with them.
    if (trainer.step() > 0) save_weights_if_possible(trainer, weights);
    throw;
  }
  try {
    save_trained(trainer, weights);
  } catch (const IoError& error) {
    throw IoError(
        message(error.what(), "; the checkpoints are whole: --resume this run when it can"));
  }
  // A signal after the last step asks for an end all the same.
  result.stop_requested = result.stop_requested || guard.interrupted();
  return result;
}

/// At most, when training is not cut: before the first step and after every epoch, every some
/// steps, and any number by the clock.
std::int64_t checkpoints_to_come(const TrainOptions& options, std::int64_t steps_per_epoch) {
  if (options.checkpoint_minutes > 0) return std::numeric_limits<std::int64_t>::max();
  std::int64_t an_epoch = 1;
  if (options.checkpoint_every > 0) an_epoch += steps_per_epoch / options.checkpoint_every;
  return 1 + options.epochs * an_epoch;
}

}  // namespace

ExitCode run_train(const TrainOptions& given) {
  const Clock::time_point begun = Clock::now();
  ProgressBar bar(!given.output.quiet && !given.output.json);
  const LogSink log = stderr_log(given.output.quiet, bar);
  std::optional<ResumedRun> resumed;
  if (!given.resume.empty()) resumed = open_run(given);
  const TrainOptions& options = resumed ? resumed->options : given;
  const FoundCheckpoint* from = resumed && resumed->from ? &*resumed->from : nullptr;
  if (from != nullptr) warn_of_newer(*from, log);
  const Devices devices = parse_devices(options.devices);
  check_precision(options, devices);
  // What cannot work is refused before anything is read.
  const Sharding sharding =
      from != nullptr ? resume_sharding(devices, options.reduce, from->checkpoint.execution.shards,
                                        options.batch_size)
                      : make_sharding(devices, options.reduce, options.shards, options.batch_size,
                                      options.batch_per_replica);
  if (log && !devices.notice.empty()) log(LogLevel::warning, devices.notice);
  const DatasetSplits data = load_data(options.data, bar);
  Model model = initial_model(options, data.train.sample_shape());
  TrainReport report = describe(options, devices, sharding, data, model);
  if (report.steps_per_epoch == 0) {
    throw UsageError(message("--last-batch drop: the ", report.train,
                             " training samples are less than the batch of ", sharding.batch_size,
                             "; use a smaller --batch-size or keep the last batch"));
  }

  RunFolder folder = resumed ? resumed->folder : RunFolder::create(options.out);
  report.run_folder = folder.path();
  const Json config = config_json(options, report, sharding);
  if (!resumed) write_text_file(folder.file("config.json"), json_text(config, 2));
  if (resumed) report.resumed = describe_resume(options, from, devices, sharding);

  World world({.devices = devices, .log = log, .pin_threads = options.pin});
  Trainer trainer(world, model, SoftmaxCrossEntropy{}, make_optimizer(options),
                  make_trainer_options(options));
  if (from != nullptr) trainer.restore(from->checkpoint);
  CheckpointKeeper checkpoints(folder.file("checkpoints"), options.keep_checkpoints,
                               checkpoints_to_come(options, report.steps_per_epoch), from, config,
                               log);
  // Rows are taken out only when all else is well.
  MetricsKeeper metrics(folder, resumed ? trainer.epoch() : std::numeric_limits<int>::max(), log);
  Narrator narrator(options, bar);
  narrator.start(report, config);
  trainer.on_checkpoint(
      [&](Checkpoint checkpoint) {
        // One that goes on behind an epoch would never write its row.
        if (metrics.written()) {
          checkpoints.save(std::move(checkpoint));
          // A run that has had a checkpoint was the latest in its time.
          if (from == nullptr) folder.become_latest();
        } else {
          checkpoints.skip(metrics.trouble());
        }
      },
      {.every_steps = options.checkpoint_every, .every_seconds = options.checkpoint_minutes * 60});
  trainer.on_progress([&](const Progress& progress) { narrator.progress(progress); });
  trainer.on_epoch([&](const EpochStats& epoch) {
    metrics.add(epoch);
    narrator.epoch(epoch);
  });
  const std::filesystem::path weights = folder.file("weights.safetensors");
  const FitResult fit = fit_and_save(options, trainer, data, weights);

  if (!metrics.written()) {
    throw IoError(message("not all figures could be written: ", metrics.trouble(),
                          "; the weights are in ", weights.string(),
                          ". Make room, then --resume the run"));
  }
  if (fit.stop_requested && !checkpoints.trouble().empty()) {
    throw IoError(message("interrupted without a checkpoint: ", checkpoints.trouble(),
                          "; the weights are in ", weights.string()));
  }

  TrainEnd end{.interrupted = fit.stop_requested,
               .stopped_early = fit.stopped_early,
               .epochs = trainer.epoch(),
               .best_epoch = fit.best_epoch,
               .restored_best = options.restore_best,
               .test = {},
               .run_folder = folder.path(),
               .weights = weights,
               .checkpoint = checkpoints.folder().newest(),
               .best_checkpoint = checkpoints.folder().best()};
  if (!end.interrupted && data.test.size() > 0) end.test = trainer.evaluate(data.test);
  end.seconds = std::chrono::duration<double>(Clock::now() - begun).count();
  narrator.end(end);
  return end.interrupted ? ExitCode::interrupted : ExitCode::ok;
}

}  // namespace lockstep::apps
