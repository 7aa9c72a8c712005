#include "apps/mnist_multi_gpu/resume.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/core/printable.h"
#include "lockstep/io/files.h"
#include "lockstep/io/run_config.h"
#include "lockstep/layers/zoo.h"
#include "lockstep/parallel/trainer.h"

#include "apps/setup.h"

namespace lockstep::apps {

namespace {

/// Options that change no bit of what is trained, or that the training data's digest decides about.
/// More epochs are what a longer run would have had.
constexpr std::array<std::string_view, 7> kFree = {
    "--devices", "--data", "--data-resident", "--no-graph", "--pin", "--epochs", "--compare-every"};
/// Of these the run's own values do not count.
constexpr std::array<std::string_view, 4> kNotKept = {"--out", "--resume", "--quiet", "--json"};

bool is_one_of(const auto& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool may_differ(const std::string& name) {
  return is_one_of(kFree, name) || is_one_of(kNotKept, name) || name.starts_with("--checkpoint-") ||
         name == "--keep-checkpoints";
}

std::string text_of(const Settings& settings, const std::string& name) {
  const auto found = settings.find(name);
  if (found == settings.end()) return "not set";
  return found->second.empty() ? "set" : found->second;
}

/// Batches are the checkpoint's, and so are shards and weights where training goes on from it.
void begin_at(const Checkpoint& from, TrainOptions& options) {
  options.batch_size = from.recipe.batch_size;
  options.batch_per_replica = 0;
  options.shards = 0;
  options.init_from.clear();
}

}  // namespace

TrainOptions resumed_options(const Settings& run, const TrainOptions& given,
                             const std::filesystem::path& weights) {
  std::string refused;
  Settings merged;
  for (const auto& [name, text] : run) {
    if (!is_one_of(kNotKept, name)) merged[name] = text;
  }
  for (const std::string& name : given.given) {
    const std::string now = text_of(given.settings, name);
    if (may_differ(name)) {
      merged[name] = given.settings.at(name);
    } else if (const std::string before = text_of(run, name); now != before) {
      refused += message(refused.empty() ? "" : "; ", name, " is ", printable(before),
                         " in that run and ", now, " here");
    }
  }
  if (!refused.empty()) {
    throw UsageError(message("--resume goes on with the same training: ", refused,
                             ". Leave them out, or start a new run from its weights with "
                             "--init-from ",
                             weights.string()));
  }
  Arguments arguments{"train"};
  for (const auto& [name, text] : merged) {
    arguments.push_back(name);
    if (!text.empty()) arguments.push_back(text);
  }
  try {
    if (auto command = parse_mnist(arguments);
        auto* options = std::get_if<TrainOptions>(&command)) {
      return std::move(*options);
    }
    throw UsageError("they ask for help");
  } catch (const UsageError& error) {
    throw IoError(message(weights.parent_path().string(), ": cannot train by the run's options (",
                          printable(error.what()), "); start a new run with --out"));
  }
}

TrainOptions options_of(const FoundCheckpoint& from) {
  const RunOptions config = parse_run_options(from.checkpoint.config, from.path);
  TrainOptions options = resumed_options(config.options, {}, from.path / "weights.safetensors");
  begin_at(from.checkpoint, options);
  return options;
}

std::vector<std::string> bit_differences(const Checkpoint& from, const TrainOptions& options,
                                         const Devices& devices, const Sharding& sharding) {
  const TrainingExecution now =
      execution_of(devices, sharding, zoo::by_name(options.model), digit_shape(), !options.no_fuse);
  return bit_differences(from.execution, now, options.reduce == Reduce::invariant);
}

ResumedRun open_run(const TrainOptions& options) {
  ResumedRun run{RunFolder::open(options.resume), {}, {}};
  check_writable(run.folder.path());
  run.from = newest_checkpoint(run.folder.file("checkpoints"));
  const std::filesystem::path config_path = run.folder.file("config.json");
  if (!run.from && !std::filesystem::exists(config_path)) {
    throw IoError(message(run.folder.path().string(),
                          ": no run was started in this folder: it has no config.json and no "
                          "checkpoints; start one with --out"));
  }
  const std::filesystem::path trained = run.folder.file("weights.safetensors");
  if (!run.from && std::filesystem::exists(trained)) {
    throw IoError(
        message(run.folder.path().string(),
                ": has weights but no checkpoint to go on from, and beginning again would "
                "replace them; start a new run from them with --init-from ",
                trained.string()));
  }
  const RunOptions config = run.from
                                ? parse_run_options(run.from->checkpoint.config, run.from->path)
                                : read_run_options(config_path);
  const std::filesystem::path weights =
      run.from ? run.from->path / "weights.safetensors" : run.folder.file("weights.safetensors");
  run.options = resumed_options(config.options, options, weights);
  run.options.resume = options.resume;
  run.options.batch_size = config.batch_size;
  run.options.batch_per_replica = 0;
  if (run.from) begin_at(run.from->checkpoint, run.options);
  return run;
}

}  // namespace lockstep::apps
