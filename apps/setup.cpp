#include "apps/setup.h"

#include <charconv>
#include <cstdint>
#include <iostream>
#include <optional>
#include <system_error>

#include "lockstep/core/error.h"
#include "lockstep/data/mnist.h"
#include "lockstep/data/synthetic.h"
#include "lockstep/io/checkpoint_folder.h"
#include "lockstep/io/run_config.h"
#include "lockstep/io/weights.h"
#include "lockstep/layers/zoo.h"

#include "apps/text.h"

namespace lockstep::apps {

namespace {

/// Checkpoints of which none can be read are no error where there is something else.
std::optional<FoundCheckpoint> newest_of(const std::filesystem::path& checkpoints, bool optional) {
  try {
    return newest_checkpoint(checkpoints);
  } catch (const IoError&) {
    if (!optional) throw;
    return {};
  }
}

/// Whether a weights file says that fewer than `step` steps are behind it.
bool is_older(const std::filesystem::path& weights, std::uint64_t step) {
  const auto metadata = read_weights_metadata(weights);
  const auto text = metadata.find(kStepKey);
  if (text == metadata.end()) return false;
  std::uint64_t own = 0;
  const char* end = text->second.data() + text->second.size();
  const auto parsed = std::from_chars(text->second.data(), end, own);
  return parsed.ec == std::errc{} && parsed.ptr == end && own < step;
}

}  // namespace

Shape digit_shape() {
  return {1, 28, 28};
}

std::filesystem::path data_folder(const DataOptions& data) {
  return data.folder.empty() ? std::filesystem::path("data") / data.dataset : data.folder;
}

DatasetSplits load_data(const DataOptions& data, ProgressBar& bar) {
  if (data.dataset == "synthetic") {
    SyntheticOptions options;
    options.train = data.limit_train.value_or(options.train);
    options.validation = data.limit_validation.value_or(options.validation);
    options.test = data.limit_test.value_or(options.test);
    bar.show("drawing digits", 0, 1);
    DatasetSplits drawn = synthetic_digits(options);
    bar.erase();
    return drawn;
  }
  const std::filesystem::path folder = data_folder(data);
  DatasetSplits read = load_mnist(folder, 5000, [&](std::int64_t done, std::int64_t total) {
    bar.show("reading " + shown(folder.string()), done, total);
  });
  bar.erase();
  if (data.limit_train) read.train = read.train.take(*data.limit_train);
  if (data.limit_validation) read.validation = read.validation.take(*data.limit_validation);
  if (data.limit_test) read.test = read.test.take(*data.limit_test);
  return read;
}

Optimizer make_optimizer(const TrainOptions& options) {
  const double lr = options.lr;
  if (options.optimizer == "sgd") {
    return Sgd{.lr = lr, .momentum = static_cast<float>(options.momentum)};
  }
  if (options.optimizer == "adamw") {
    return AdamW{.lr = lr, .weight_decay = static_cast<float>(options.weight_decay)};
  }
  const EpsilonPlace of_model =
      options.model == "article" ? EpsilonPlace::inside : EpsilonPlace::outside;
  return Adam{.lr = lr, .epsilon_place = options.epsilon_place.value_or(of_model)};
}

Schedule make_schedule(const TrainOptions& options) {
  return ExponentialDecay{.factor = options.lr_decay, .min = options.lr_min};
}

TrainerOptions make_trainer_options(const TrainOptions& options) {
  Residence residence = Residence::automatic;
  if (options.data_resident == "on") residence = Residence::resident;
  if (options.data_resident == "off") residence = Residence::streamed;
  return {.seed = options.seed,
          .reduce = options.reduce,
          .shards = options.shards,
          .bucket_bytes = options.bucket_bytes,
          .schedule = make_schedule(options),
          .l2 = static_cast<float>(options.l2),
          .clip_norm = static_cast<float>(options.clip_norm),
          .precision = options.precision == "tf32" ? Precision::tf32 : Precision::fp32,
          .residence = residence,
          .graph = !options.no_graph,
          .fuse = !options.no_fuse,
          .on_nonfinite = options.on_nonfinite == "skip" ? OnNonfinite::skip : OnNonfinite::stop,
          .compare_every = options.compare_every};
}

LogSink stderr_log(bool quiet, ProgressBar& bar) {
  if (quiet) return {};
  return [&bar](LogLevel level, std::string_view text) {
    bar.erase();
    std::cerr << (level == LogLevel::warning ? "warning: " : "note: ") << shown(std::string(text))
              << '\n';
  };
}

Devices replicas_of(const std::string& kind, int count) {
  return parse_devices(kind == "cpu" ? message("cpu:", count) : message("cuda:0-", count - 1));
}

std::string processor_text(const std::string& kind) {
  if (kind == "cpu") return std::string(name_of(preferred_cpu_set()));
  return device_info({DeviceKind::cuda, 0}).name;
}

std::filesystem::path weights_file(const std::filesystem::path& path, const char* option) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) {
    throw IoError(message(path.string(),
                          ": no such run folder or weights file; train first, or name one with ",
                          option));
  }
  if (error) {
    throw IoError(message(path.string(), ": cannot be looked at (", error.message(),
                          "); name another run folder or weights file with ", option));
  }
  if (!fs::is_directory(status)) return path;
  fs::path own = path / "weights.safetensors";
  const bool has_own = fs::exists(own, error);
  const auto newest = newest_of(path / "checkpoints", has_own);
  if (has_own && (!newest || !is_older(own, newest->checkpoint.step.step))) return own;
  if (newest) return newest->path / "weights.safetensors";
  throw IoError(message(path.string(), ": holds no weights.safetensors and no checkpoint; name a ",
                        "run folder or weights file with ", option));
}

TrainedModel load_trained(const std::filesystem::path& path, const std::string& model_name) {
  const std::filesystem::path weights = weights_file(path, "--weights");
  const std::filesystem::path folder = weights.parent_path();
  const LegalTexts wanted = {{"model", zoo::names()}, {"dataset", dataset_names()}, {"data", {}}};
  auto config = read_run_config(folder / "config.json", wanted);
  if (config.empty()) config = read_run_config(folder / "manifest.json", wanted, "config");
  std::string name = !model_name.empty() ? model_name : config["model"];
  if (name.empty()) name = "article";
  Model model(zoo::by_name(name), digit_shape());
  load_weights(model, weights);
  return {std::move(model), weights, name, config["dataset"], config["data"]};
}

}  // namespace lockstep::apps
