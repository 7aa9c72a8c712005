#include "lockstep/core/error.h"

#include "apps/option_groups.h"
#include "apps/options.h"

namespace lockstep::apps {

namespace {

constexpr const char* kProgram = "lockstep_bench";

BenchCommand parse_scaling(const Arguments& arguments) {
  ScalingOptions options;
  std::string replicas;
  CommandLine line(
      std::string(kProgram) + " scaling [options]",
      "Measures training with different numbers of replicas: strong scaling with one batch for "
      "all of them, weak scaling with one batch for each. Rounds are interleaved, so that a noisy "
      "minute hits all numbers alike; medians with their spread are reported.");
  line.group("What to measure");
  line.value("--kind", options.kind, "KIND", "cpu or cuda (cpu)", one_of({"cpu", "cuda"}));
  line.value("--replicas", replicas, "LIST",
             "numbers of replicas; the first is what speed-up refers to (1,2,4,8)",
             number_list(kMaxReplicas));
  line.value("--rounds", options.rounds, "N", "measurements of every number (5)",
             whole_number(1, 1000));
  line.value("--steps", options.steps, "N", "training steps of one measurement (100)",
             whole_number(1, kMaxCount));
  line.value("--warm-up", options.warm_up, "N", "steps before each measurement, not timed (10)",
             whole_number(1, kMaxCount));
  line.value("--batch-size", options.batch_size, "N",
             "samples of a step: of all replicas together (strong) or of each (weak) (128)",
             whole_number(1, kMaxBatch));
  line.value("--model", options.model, "NAME", "article, lenet5, wide_cnn or mlp (article)",
             model_name());
  add_data(line, options.data.dataset, options.data.folder, "synthetic");
  line.group("Output");
  line.value("--json", options.json, "FILE",
             "write the report as JSON; - writes it to stdout and nothing else");
  line.flag("--quiet", options.quiet, "print nothing but errors");
  line.epilog(exit_code_help());
  if (auto text = line.parse(arguments, version_text(kProgram))) return PrintText{*text};
  if (!replicas.empty()) options.replicas = parse_numbers(replicas);
  return options;
}

}  // namespace

BenchCommand parse_bench(const Arguments& arguments) {
  if (!arguments.empty() && arguments[0] == "scaling") {
    return parse_scaling(Arguments(arguments.begin() + 1, arguments.end()));
  }
  for (const std::string& argument : arguments) {
    if (argument == "--version") return PrintText{version_text(kProgram)};
    if (argument == "--help" || argument == "-h") {
      return PrintText{
          "usage: lockstep_bench scaling [options]\n\nMeasures Lockstep on this machine; "
          "'lockstep_bench scaling "
          "--help' lists the options.\n"};
    }
  }
  throw UsageError(message(
      kProgram, ": ", arguments.empty() ? "no command given" : "no command '" + arguments[0] + "'",
      "; want scaling (--help tells more)"));
}

}  // namespace lockstep::apps
