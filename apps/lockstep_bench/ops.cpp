// lockstep_bench ops: measures.
#include "apps/lockstep_bench/ops.h"

#include <chrono>
#include <iostream>

#include "lockstep/core/context.h"

#include "apps/lockstep_bench/operations.h"
#include "apps/lockstep_bench/other_load.h"
#include "apps/lockstep_bench/report_output.h"
#include "apps/progress_bar.h"

namespace lockstep::apps {

namespace {

/// What one measurement takes at least, so that reading the clock does not count.
constexpr double kLeastSeconds = 5e-3;

/// Seconds of `repetitions` calls.
double seconds_of(const Operation& operation, std::int64_t repetitions) {
  const auto start = std::chrono::steady_clock::now();
  for (std::int64_t i = 0; i < repetitions; ++i) operation.run();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return seconds.count();
}

/// Calls that take kLeastSeconds; warms up on the way.
std::int64_t repetitions_for(const Operation& operation) {
  std::int64_t repetitions = 1;
  while (seconds_of(operation, repetitions) < kLeastSeconds) repetitions *= 2;
  return repetitions;
}

}  // namespace

ExitCode run_ops(const OpsOptions& options) {
  const bool human = begin_report(options.json, options.quiet);
  ProgressBar bar(human);
  Context context(Device{});
  const std::vector<Operation> operations = make_operations(context, options.filter);
  MachineMeter meter(context.cpu_set());
  OpsReport report{.set = std::string(name_of(context.cpu_set())), .rounds = options.rounds};
  std::vector<std::int64_t> repetitions;
  for (const Operation& operation : operations) {
    report.rows.push_back({.operation = operation.name,
                           .shape = operation.shape,
                           .block = operation.block,
                           .flops = operation.flops,
                           .bytes = operation.bytes,
                           .working_set = operation.working_set});
    repetitions.push_back(repetitions_for(operation));
  }
  const auto total = static_cast<std::int64_t>(operations.size()) * options.rounds;
  std::int64_t done = 0;
  const OtherLoad others;
  for (int round = 0; round < options.rounds; ++round) {
    meter.measure();
    for (std::size_t i = 0; i < operations.size(); ++i) {
      bar.show("ops", done++, total, operations[i].name);
      report.rows[i].seconds.push_back(seconds_of(operations[i], repetitions[i]) /
                                       static_cast<double>(repetitions[i]));
    }
  }
  bar.erase();
  report.others = others.cores();
  report.machine = meter.machine();
  derive(report);
  if (human) write_ops(std::cout, report);
  deliver(options.json, ops_event(report));
  return ExitCode::ok;
}

}  // namespace lockstep::apps
