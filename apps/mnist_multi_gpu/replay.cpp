// replay: trains again from a checkpoint of a run, up to the next one, and compares the two.
#include <algorithm>
#include <iostream>

#include "lockstep/core/error.h"
#include "lockstep/layers/zoo.h"
#include "lockstep/parallel/trainer.h"

#include "apps/json_events.h"
#include "apps/mnist_multi_gpu/commands.h"
#include "apps/mnist_multi_gpu/resume.h"
#include "apps/progress_bar.h"
#include "apps/setup.h"
#include "apps/text.h"
#include "apps/weights_compare.h"

namespace lockstep::apps {

namespace {

namespace fs = std::filesystem;

/// What is trained again, and what it should come to.
struct Stretch {
  FoundCheckpoint from;
  std::optional<Checkpoint> to;  ///< none where no checkpoint stands at the end: trained twice
  std::int64_t steps = 0;
};

std::int64_t step_of(const Checkpoint& checkpoint) {
  return static_cast<std::int64_t>(checkpoint.step.step);
}

/// The stretch that ends at the newest checkpoint, or begins at the one that `options` name.
Stretch choose(const ReplayOptions& options, const fs::path& folder) {
  const std::vector<fs::path> all = checkpoints_in(folder);
  if (all.empty()) {
    throw IoError(message(folder.string(), ": there are no checkpoints to train again from"));
  }
  auto at = all.end() - (all.size() > 1 ? 2 : 1);
  if (!options.from.empty()) {
    at = std::find_if(all.begin(), all.end(),
                      [&](const fs::path& path) { return path.filename() == options.from; });
    if (at == all.end()) {
      std::string names;
      for (const fs::path& path : all) names += ' ' + path.filename().string();
      throw UsageError(message("--from ", options.from, ": no such checkpoint in ", folder.string(),
                               "; there are", names));
    }
  }
  Stretch stretch{{*at, {}, load_checkpoint(*at), {}, {}}, {}, options.steps};
  const std::int64_t first = step_of(stretch.from.checkpoint);
  for (auto next = at + 1; next != all.end() && !stretch.to; ++next) {
    Checkpoint other = load_checkpoint(*next);
    const std::int64_t distance = step_of(other) - first;
    if (distance <= 0 || (options.steps > 0 && distance != options.steps)) continue;
    stretch.steps = distance;
    stretch.to = std::move(other);
  }
  if (stretch.steps == 0) {
    throw UsageError(message("replay: ", at->filename().string(),
                             " is the newest checkpoint; say with --steps how far to train"));
  }
  return stretch;
}

/// `steps` steps from the checkpoint on.
Checkpoint train_again(const ReplayOptions& options, const TrainOptions& train,
                       const Devices& devices, const Stretch& stretch, const DatasetSplits& data,
                       ProgressBar& bar) {
  World world({.devices = devices, .log = stderr_log(options.output.quiet, bar)});
  Trainer trainer(world, zoo::by_name(train.model), SoftmaxCrossEntropy{}, make_optimizer(train),
                  make_trainer_options(train));
  trainer.restore(stretch.from.checkpoint);
  trainer.begin(data.train, {.batch_size = stretch.from.checkpoint.recipe.batch_size,
                             .last_batch = train.last_batch,
                             .epochs = train.epochs});
  const std::int64_t first = trainer.step();
  trainer.on_progress(
      [&](const Progress&) { bar.show("replay", trainer.step() - first, stretch.steps); });
  trainer.run_steps(stretch.steps);
  bar.erase();
  return trainer.checkpoint();
}

/// The first tensor in which two checkpoints differ, by bits.
std::optional<WeightDifference> first_difference(const std::vector<NamedTensor>& expected,
                                                 const std::vector<NamedTensor>& now) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (auto difference = compare_tensors(expected[i].name, expected[i].values, now.at(i).values)) {
      return difference;
    }
  }
  return {};
}

}  // namespace

ExitCode run_replay(const ReplayOptions& options) {
  const bool human = !options.output.quiet && !options.output.json;
  ProgressBar bar(human);
  const RunFolder folder = RunFolder::open(options.run);
  const Stretch stretch = choose(options, folder.file("checkpoints"));
  const Checkpoint& from = stretch.from.checkpoint;
  TrainOptions train = options_of(stretch.from);
  if (!options.devices.empty()) train.devices = options.devices;
  const Devices devices = parse_devices(train.devices);
  const Sharding sharding =
      resume_sharding(devices, train.reduce, from.execution.shards, from.recipe.batch_size);
  const std::vector<std::string> reasons = bit_differences(from, train, devices, sharding);
  const DatasetSplits data = load_data(train.data, bar);
  const std::string name = stretch.from.path.filename().string();
  bar.erase();
  if (human) {
    std::cout << "replay: " << stretch.steps << " steps from " << name << " on "
              << devices_text(devices, sharding.replicas) << ", compared with "
              << (stretch.to ? "the checkpoint behind them" : "themselves: no checkpoint is there")
              << '\n'
              << std::flush;
    for (const std::string& reason : reasons) {
      std::cout << "the bits may differ: " << reason << '\n';
    }
  }
  const Checkpoint expected =
      stretch.to ? *stretch.to : train_again(options, train, devices, stretch, data, bar);
  const Checkpoint now = train_again(options, train, devices, stretch, data, bar);
  auto difference = first_difference(expected.weights, now.weights);
  if (!difference) difference = first_difference(expected.moments, now.moments);

  Json event = make_event("replay");
  event["from"] = name;
  event["steps"] = stretch.steps;
  event["compared_with"] = stretch.to ? "checkpoint" : "second_run";
  event["bit_equal"] = !difference;
  event["may_differ"] = reasons;
  if (difference) event["first_difference"] = difference_json(*difference);
  if (human) {
    std::cout << "bit-equal: " << (difference ? "no" : "yes") << '\n';
    if (difference) {
      std::cout << "first difference: " << difference->tensor << ", element " << difference->index
                << "; " << difference->count << " elements differ, by " << difference->ulps
                << " units in the last place at most\n";
    }
  }
  if (options.output.json) write_event(std::cout, event);
  return difference ? ExitCode::failure : ExitCode::ok;
}

}  // namespace lockstep::apps
