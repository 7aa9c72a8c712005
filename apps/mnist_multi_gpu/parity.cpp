// parity: trains apart with several numbers of replicas and compares the weight files byte for
// byte.
#include <cmath>
#include <cstdint>
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/sha256.h"
#include "lockstep/io/weights.h"
#include "lockstep/layers/zoo.h"
#include "lockstep/parallel/trainer.h"

#include "apps/json_events.h"
#include "apps/mnist_multi_gpu/commands.h"
#include "apps/progress_bar.h"
#include "apps/setup.h"
#include "apps/text.h"
#include "apps/weights_compare.h"

namespace lockstep::apps {

namespace {

constexpr std::int64_t kBatchesPerEpoch = 12;
constexpr std::int64_t kValidationSamples = 1000;

struct Run {
  int replicas = 0;
  Model model;
  EvalStats validation;
  std::string file;  ///< the bytes of its weights file
  std::string digest;
};

/// Training samples that make the last batch of every epoch uneven: two thirds of a batch.
std::int64_t uneven_samples(const ParityOptions& options) {
  const std::int64_t tail = options.batch_size * 2 / 3;
  return kBatchesPerEpoch * options.batch_size + tail;
}

Run train_apart(const ParityOptions& options, const DatasetSplits& data, int replicas,
                ProgressBar& bar) {
  World world({.devices = replicas_of(options.kind, replicas), .log = {}});
  Trainer trainer(world, zoo::by_name(options.model), SoftmaxCrossEntropy{}, Adam{.lr = 0.01F},
                  {.seed = options.seed,
                   .reduce = Reduce::invariant,
                   .shards = options.shards,
                   .schedule = ExponentialDecay{}});
  trainer.begin(data.train, {.batch_size = options.batch_size});
  const std::string label = message("parity: ", replicas, " replicas");
  trainer.on_progress([&](const Progress& progress) {
    if (progress.phase == Progress::Phase::training) bar.show(label, trainer.step(), options.steps);
  });
  // The evaluation falls into an epoch, where it could do harm.
  trainer.run_steps(options.steps / 2);
  const EvalStats validation = trainer.evaluate(data.validation);
  trainer.run_steps(options.steps - options.steps / 2);
  Run run{replicas, trainer.model(), validation, {}, {}};
  run.file = weights_bytes(run.model);
  run.digest = sha256(std::as_bytes(std::span(run.file)));
  return run;
}

void write_run(const Run& run) {
  std::cout << right(std::to_string(run.replicas), 8) << "  " << run.digest << "  "
            << fixed(run.validation.loss, 9) << "  " << run.validation.correct << " of "
            << run.validation.samples << '\n'
            << std::flush;
}

bool same(const Run& a, const Run& b) {
  return a.file == b.file && a.validation.loss == b.validation.loss &&
         a.validation.correct == b.validation.correct;
}

/// What to say about the first run that is not like the first.
Json difference_json(const Run& first, const Run& other) {
  Json json;
  json["replicas"] = {first.replicas, other.replicas};
  if (const auto difference = first_difference(first.model, other.model)) {
    json.update(difference_json(*difference));
  } else {
    json["validation_loss"] = {first.validation.loss, other.validation.loss};
  }
  return json;
}

}  // namespace

ExitCode run_parity(const ParityOptions& options) {
  const bool human = !options.output.quiet && !options.output.json;
  ProgressBar bar(human);
  // Numbers that cannot work are refused before anything is read.
  for (const int replicas : options.replicas) {
    static_cast<void>(make_sharding(replicas_of(options.kind, replicas), Reduce::invariant,
                                    options.shards, options.batch_size, 0));
  }
  DataOptions data_options = options.data;
  data_options.limit_train = uneven_samples(options);
  data_options.limit_validation = kValidationSamples;
  data_options.limit_test = 0;
  DatasetSplits data = load_data(data_options, bar);
  // A data set smaller than that may happen to fill its last batch.
  if (data.train.size() % options.batch_size == 0 && options.batch_size > 1) {
    data.train = data.train.take(data.train.size() - 1);
  }
  if (human) {
    std::cout << "parity: " << options.kind << " (" << processor_text(options.kind) << "), model "
              << options.model << ", " << options.steps << " steps of " << options.batch_size
              << " over " << data.train.size() << " samples of " << options.data.dataset << ", "
              << options.shards << " shards\n"
              << "replicas  " << left("sha256 of the weights", 64) << "  validation loss, right\n"
              << std::flush;
  }
  std::vector<Run> runs;
  for (const int replicas : options.replicas) {
    runs.push_back(train_apart(options, data, replicas, bar));
    bar.erase();
    if (human) write_run(runs.back());
  }

  Json event = make_event("parity");
  event["kind"] = options.kind;
  event["replicas"] = options.replicas;
  event["bit_equal"] = true;
  for (const Run& run : runs) event["sha256"].push_back(run.digest);
  event["steps"] = options.steps;
  event["train_samples"] = data.train.size();
  for (const Run& run : runs) {
    if (same(runs.front(), run)) continue;
    event["bit_equal"] = false;
    event["first_difference"] = difference_json(runs.front(), run);
    break;
  }
  const bool equal = event["bit_equal"].get<bool>();
  if (human) {
    std::cout << "bit-equal: " << (equal ? "yes" : "no") << '\n';
    if (!equal) std::cout << "first difference: " << event["first_difference"].dump() << '\n';
  }
  // The last line is for programs in either kind of output.
  if (options.output.json || !options.output.quiet) write_event(std::cout, event);
  return equal ? ExitCode::ok : ExitCode::failure;
}

}  // namespace lockstep::apps
