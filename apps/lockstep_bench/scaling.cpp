// lockstep_bench scaling: measures.
#include "apps/lockstep_bench/scaling.h"

#include <chrono>
#include <iostream>

#include "lockstep/layers/zoo.h"
#include "lockstep/parallel/trainer.h"

#include "apps/lockstep_bench/report_output.h"
#include "apps/progress_bar.h"
#include "apps/setup.h"

namespace lockstep::apps {

namespace {

/// Samples a second of `options.steps` full batches in a world of its own, start-up and warm-up
/// left out.
double measure(const ScalingOptions& options, const Dataset& train, const ScalingRow& row) {
  World world({.devices = replicas_of(options.kind, row.replicas), .log = {}});
  Trainer trainer(world, zoo::by_name(options.model), SoftmaxCrossEntropy{}, Adam{.lr = 0.001F});
  trainer.begin(train, {.batch_size = row.batch_size, .last_batch = LastBatch::drop});
  trainer.run_steps(options.warm_up);
  const auto start = std::chrono::steady_clock::now();
  trainer.run_steps(options.steps);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return static_cast<double>(options.steps * row.batch_size) / seconds.count();
}

/// Rows without rates; refuses numbers that cannot work before anything is measured.
std::vector<ScalingRow> plan_rows(const ScalingOptions& options, bool weak) {
  std::vector<ScalingRow> rows;
  for (const int replicas : options.replicas) {
    const std::int64_t batch = options.batch_size * (weak ? replicas : 1);
    static_cast<void>(
        make_sharding(replicas_of(options.kind, replicas), Reduce::fast, 0, batch, 0));
    rows.push_back({.replicas = replicas,
                    .batch_size = batch,
                    .rates = {},
                    .above_cores = options.kind == "cpu" && replicas > allowed_cores()});
  }
  return rows;
}

}  // namespace

ExitCode run_scaling(const ScalingOptions& options) {
  const bool human = begin_report(options.json, options.quiet);
  ProgressBar bar(human);
  ScalingReport report{.kind = options.kind,
                       .processor = processor_text(options.kind),
                       .cores = allowed_cores(),
                       .model = options.model,
                       .dataset = options.data.dataset,
                       .batch_size = options.batch_size,
                       .rounds = options.rounds,
                       .steps = options.steps,
                       .warm_up = options.warm_up,
                       .strong = plan_rows(options, false),
                       .weak = plan_rows(options, true)};
  DataOptions data = options.data;
  data.limit_validation = 0;
  data.limit_test = 0;
  const Dataset train = load_data(data, bar).train;
  const std::size_t numbers = options.replicas.size();
  const auto total = static_cast<std::int64_t>(2 * numbers) * options.rounds;
  std::int64_t done = 0;
  for (int round = 0; round < options.rounds; ++round) {
    for (std::size_t i = 0; i < numbers; ++i) {
      for (ScalingRow* row : {&report.strong[i], &report.weak[i]}) {
        bar.show("scaling", done++, total, message(row->replicas, " replicas"));
        row->rates.push_back(measure(options, train, *row));
      }
    }
  }
  bar.erase();
  derive(report.strong);
  derive(report.weak);
  if (human) write_scaling(std::cout, report);
  deliver(options.json, scaling_event(report));
  return ExitCode::ok;
}

}  // namespace lockstep::apps
