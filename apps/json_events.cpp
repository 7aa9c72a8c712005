#include "apps/json_events.h"

#include "lockstep/core/device.h"
#include "lockstep/io/metrics.h"

#include "apps/setup.h"

namespace lockstep::apps {

Json make_event(const char* name) {
  Json event;
  event["event"] = name;
  event["schema"] = kEventSchema;
  return event;
}

std::string json_text(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace) + '\n';
}

void write_event(std::ostream& out, const Json& event) {
  out << json_text(event) << std::flush;
}

Json config_json(const TrainOptions& options, const TrainReport& report, const Sharding& sharding) {
  Json config;
  config["version"] = report.version;
  config["model"] = options.model;
  config["dataset"] = options.data.dataset;
  config["data"] = options.data.dataset == "synthetic" ? "" : data_folder(options.data).string();
  config["train_samples"] = report.train;
  config["validation_samples"] = report.validation;
  config["test_samples"] = report.test;
  config["init_from"] = options.init_from.string();
  config["seed"] = options.seed;
  config["epochs"] = options.epochs;
  config["batch_size"] = sharding.batch_size;
  config["last_batch"] = options.last_batch == LastBatch::keep ? "keep" : "drop";
  config["steps_per_epoch"] = report.steps_per_epoch;
  config["devices"] = report.device_names;
  config["cpu_set"] = name_of(preferred_cpu_set());
  config["precision"] = options.precision;
  config["data_resident"] = options.data_resident;
  config["graph"] = !options.no_graph;
  config["fuse"] = !options.no_fuse;
  config["replicas"] = sharding.replicas;
  config["shards"] = sharding.shards;
  config["shard_samples"] = sharding.shard_samples;
  config["reduce"] = report.reduce;
  config["bucket_bytes"] = options.bucket_bytes;
  config["optimizer"] = report.optimizer;
  config["schedule"] = report.schedule;
  config["lr"] = options.lr;
  config["lr_decay"] = options.lr_decay;
  config["lr_min"] = options.lr_min;
  config["l2"] = options.l2;
  config["clip_norm"] = options.clip_norm;
  config["early_stopping"] = options.early_stopping;
  config["restore_best"] = options.restore_best;
  config["run_dir"] = report.run_folder.string();
  config["options"] = options.settings;
  return config;
}

Json start_event(const Json& config, const std::optional<ResumeReport>& resumed) {
  Json event = make_event("start");
  event.update(config);
  event["resumed_from"] = nullptr;
  if (resumed) {
    event["resumed_from"] = resumed->checkpoint.string();
    event["resumed_step"] = resumed->step;
    event["resumed_epoch"] = resumed->epoch;
    event["bit_equal"] = resumed->bit_differences.empty();
    event["bit_differences"] = resumed->bit_differences;
  }
  return event;
}

Json epoch_event(const EpochStats& epoch) {
  Json event = make_event("epoch");
  event.update(Json::parse(epoch_json(epoch)));
  return event;
}

Json result_event(const TrainEnd& end) {
  Json event = make_event(end.interrupted ? "interrupted" : "result");
  event["test_accuracy"] = end.test ? Json(end.test->accuracy()) : Json();
  event["test_loss"] = end.test ? Json(end.test->loss) : Json();
  event["test_correct"] = end.test ? Json(end.test->correct) : Json();
  event["test_samples"] = end.test ? end.test->samples : 0;
  event["epochs"] = end.epochs;
  event["best_epoch"] = end.best_epoch >= 0 ? Json(end.best_epoch) : Json();
  event["stopped_early"] = end.stopped_early;
  event["restored_best"] = end.restored_best;
  event["seconds"] = end.seconds;
  event["run_dir"] = end.run_folder.string();
  event["weights"] = end.weights.string();
  event["checkpoint"] = end.checkpoint.string();
  event["best_checkpoint"] = end.best_checkpoint.string();
  return event;
}

Json difference_json(const WeightDifference& difference) {
  Json json;
  json["tensor"] = difference.tensor;
  json["index"] = difference.index;
  json["elements"] = difference.count;
  json["ulps"] = difference.ulps;
  return json;
}

Json eval_event(const EvalReport& report) {
  Json event = make_event("eval");
  event["dataset"] = report.dataset;
  event["split"] = report.split;
  event["loss"] = report.stats.loss;
  event["accuracy"] = report.stats.accuracy();
  event["correct"] = report.stats.correct;
  event["samples"] = report.stats.samples;
  event["seconds"] = report.stats.seconds;
  event["confusion"] = report.confusion;
  event["weights"] = report.weights.string();
  return event;
}

Json error_event(const char* kind, int exit_code, const std::string& text) {
  Json event = make_event("error");
  event["kind"] = kind;
  event["exit_code"] = exit_code;
  event["message"] = text;
  return event;
}

}  // namespace lockstep::apps
