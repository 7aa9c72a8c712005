#include "lockstep/io/manifest.h"

#include <cmath>
#include <limits>
#include <type_traits>

#include <nlohmann/json.hpp>

#include "lockstep/core/error.h"
#include "lockstep/core/number_text.h"
#include "lockstep/core/printable.h"
#include "lockstep/io/json_object.h"

namespace lockstep {

namespace {

using Json = nlohmann::ordered_json;

/// The manifest, its parts, the configuration in it and what that nests.
constexpr int kMaxDepth = 16;

/// JSON has no infinity and no NaN: those are texts.
Json real(double value) {
  return std::isfinite(value) ? Json(value) : Json(number_text(value));
}

double real_of(const Json& json) {
  if (!json.is_string()) return json.get<double>();
  const auto text = json.get<std::string>();
  for (const double value :
       {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
        std::numeric_limits<double>::quiet_NaN(), -std::numeric_limits<double>::quiet_NaN()}) {
    if (number_text(value) == text) return value;
  }
  throw IoError("'" + printable(text) + "' is no number");
}

/// A whole number that fits T and is not negative (-1 is, where `min` says so).
template <class T>
T whole(const Json& object, const char* key, std::int64_t min = 0) {
  const Json& json = object.at(key);
  const bool fits =
      json.is_number_unsigned()
          ? json.get<std::uint64_t>() <= static_cast<std::uint64_t>(std::numeric_limits<T>::max())
          : json.is_number_integer() && json.get<std::int64_t>() >= min;
  if (!fits) throw IoError(message("'", key, "' is ", printable(json.dump()), ", no such number"));
  return json.get<T>();
}

Json to_json(const TrainingRecipe& recipe) {
  Json json;
  json["model"] = recipe.model;
  json["optimizer"] = recipe.optimizer;
  json["schedule"] = recipe.schedule;
  json["schedule_epochs"] = recipe.schedule_epochs;
  json["seed"] = recipe.seed;
  json["batch_size"] = recipe.batch_size;
  json["last_batch"] = recipe.last_batch;
  json["reduce"] = recipe.reduce;
  json["bucket_bytes"] = recipe.bucket_bytes;
  json["l2"] = recipe.l2;
  json["clip_norm"] = recipe.clip_norm;
  json["precision"] = recipe.precision;
  json["fuse"] = recipe.fuse;
  json["data"] = recipe.data;
  json["samples"] = recipe.samples;
  json["data_sha256"] = recipe.data_sha256;
  return json;
}

TrainingRecipe recipe_of(const Json& json) {
  return {.model = json.at("model").get<std::vector<std::string>>(),
          .optimizer = json.at("optimizer").get<std::string>(),
          .schedule = json.at("schedule").get<std::string>(),
          .schedule_epochs = whole<std::int64_t>(json, "schedule_epochs"),
          .seed = whole<std::uint64_t>(json, "seed"),
          .batch_size = whole<std::int64_t>(json, "batch_size", 1),
          .last_batch = json.at("last_batch").get<std::string>(),
          .reduce = json.at("reduce").get<std::string>(),
          .bucket_bytes = whole<std::int64_t>(json, "bucket_bytes"),
          .l2 = json.at("l2").get<float>(),
          .clip_norm = json.at("clip_norm").get<float>(),
          .precision = json.at("precision").get<std::string>(),
          .fuse = json.at("fuse").get<bool>(),
          .data = json.at("data").get<std::string>(),
          .samples = whole<std::int64_t>(json, "samples"),
          .data_sha256 = json.at("data_sha256").get<std::string>()};
}

Json to_json(const TrainingExecution& execution) {
  Json json;
  json["version"] = execution.version;
  json["backend"] = execution.backend;
  json["processor"] = execution.processor;
  json["replicas"] = execution.replicas;
  json["shards"] = execution.shards;
  json["shard_samples"] = execution.shard_samples;
  json["block_samples"] = execution.block_samples;
  return json;
}

TrainingExecution execution_of(const Json& json) {
  return {.version = json.at("version").get<std::string>(),
          .backend = json.at("backend").get<std::string>(),
          .processor = json.at("processor").get<std::string>(),
          .replicas = whole<int>(json, "replicas", 1),
          .shards = whole<int>(json, "shards", 1),
          .shard_samples = whole<std::int64_t>(json, "shard_samples"),
          .block_samples = whole<std::int64_t>(json, "block_samples")};
}

Json to_json(const EpochSums& sums, double train_seconds) {
  Json json;
  json["loss"] = real(sums.loss);
  json["correct"] = real(sums.correct);
  json["samples"] = real(sums.samples);
  json["reg_loss"] = real(sums.reg_loss);
  json["steps"] = real(sums.steps);
  json["skipped"] = real(sums.skipped);
  json["ema"] = real(sums.ema);
  json["ema_weight"] = real(sums.ema_weight);
  json["last_loss"] = real(sums.last_loss);
  json["train_seconds"] = real(train_seconds);
  return json;
}

EpochSums sums_of(const Json& json) {
  return {.loss = real_of(json.at("loss")),
          .correct = real_of(json.at("correct")),
          .samples = real_of(json.at("samples")),
          .reg_loss = real_of(json.at("reg_loss")),
          .steps = real_of(json.at("steps")),
          .skipped = real_of(json.at("skipped")),
          .ema = real_of(json.at("ema")),
          .ema_weight = real_of(json.at("ema_weight")),
          .last_loss = real_of(json.at("last_loss"))};
}

Json to_json(const FitProgress& fit) {
  Json json;
  json["first_epoch"] = fit.first_epoch;
  json["best_epoch"] = fit.best_epoch;
  json["best_loss"] = real(fit.best_loss);
  json["since_best"] = fit.since_best;
  return json;
}

FitProgress fit_of(const Json& json) {
  return {.first_epoch = whole<int>(json, "first_epoch"),
          .best_epoch = whole<int>(json, "best_epoch", -1),
          .best_loss = real_of(json.at("best_loss")),
          .since_best = whole<int>(json, "since_best")};
}

Json position_json(const Checkpoint& checkpoint) {
  Json json;
  json["step"] = checkpoint.step.step;
  json["epoch"] = checkpoint.step.epoch;
  json["step_in_epoch"] = checkpoint.step.step_in_epoch;
  json["sample"] = checkpoint.position();
  return json;
}

/// What keys the random numbers of what comes: they have no state but this.
Json random_json(const Checkpoint& checkpoint) {
  Json json;
  json["generator"] = "philox4x32-10";
  json["seed"] = checkpoint.recipe.seed;
  json["epoch"] = checkpoint.step.epoch;
  return json;
}

Json config_json(const std::string& config) {
  if (config.empty()) return {};
  Json json = Json::parse(config, nullptr, false);
  if (!json.is_object()) throw UsageError("checkpoint: its config is no JSON object");
  return json;
}

}  // namespace

std::string manifest_text(const Checkpoint& checkpoint) {
  Json json;
  json["schema"] = kManifestSchema;
  json["position"] = position_json(checkpoint);
  json["random"] = random_json(checkpoint);
  json["epoch"] = to_json(checkpoint.sums, checkpoint.train_seconds);
  json["fit"] = to_json(checkpoint.fit);
  json["recipe"] = to_json(checkpoint.recipe);
  json["execution"] = to_json(checkpoint.execution);
  json["tensors"]["weights"] = checkpoint.weights.size();
  json["tensors"]["moments"] = checkpoint.moments.size();
  json["tensors"]["best_weights"] = checkpoint.best_weights.size();
  json["parent"]["name"] = checkpoint.parent.name;
  json["parent"]["sha256"] = checkpoint.parent.sha256;
  json["config"] = config_json(checkpoint.config);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

Checkpoint parse_manifest(const std::string& text, const std::string& where) {
  const Json json = parse_object<Json>(text, kMaxDepth, where, "the manifest");
  try {
    if (const int schema = whole<int>(json, "schema"); schema != kManifestSchema) {
      throw IoError(message("its schema is ", schema, ", this version reads ", kManifestSchema,
                            "; go on with the version of Lockstep that wrote it"));
    }
    Checkpoint checkpoint;
    const Json& position = json.at("position");
    checkpoint.step.step = whole<std::uint64_t>(position, "step");
    checkpoint.step.epoch = whole<std::uint32_t>(position, "epoch");
    checkpoint.step.step_in_epoch = whole<std::uint32_t>(position, "step_in_epoch");
    checkpoint.sums = sums_of(json.at("epoch"));
    checkpoint.train_seconds = real_of(json.at("epoch").at("train_seconds"));
    checkpoint.fit = fit_of(json.at("fit"));
    checkpoint.recipe = recipe_of(json.at("recipe"));
    checkpoint.execution = execution_of(json.at("execution"));
    checkpoint.parent = {json.at("parent").at("name").get<std::string>(),
                         json.at("parent").at("sha256").get<std::string>()};
    const Json& tensors = json.at("tensors");
    checkpoint.weights.resize(whole<std::uint16_t>(tensors, "weights"));
    checkpoint.moments.resize(whole<std::uint16_t>(tensors, "moments"));
    checkpoint.best_weights.resize(whole<std::uint16_t>(tensors, "best_weights"));
    if (!json.at("config").is_null()) checkpoint.config = json.at("config").dump();
    return checkpoint;
  } catch (const Json::exception& error) {
    throw IoError(message(where, ": no manifest of a checkpoint: ", words_of(error)));
  } catch (const IoError& error) {
    throw IoError(message(where, ": ", error.what()));
  }
}

}  // namespace lockstep
