#include <algorithm>
#include <limits>
#include <set>
#include <sstream>

#include "lockstep/core/error.h"

#include "apps/option_groups.h"
#include "apps/options.h"
#include "apps/text.h"

namespace lockstep::apps {

namespace {

constexpr const char* kProgram = "lockstep_bench";

void add_report(CommandLine& line, std::string& json, bool& quiet) {
  line.group("Output");
  line.value("--json", json, "FILE",
             "write the report as JSON; - writes it to stdout and nothing else");
  line.flag("--quiet", quiet, "print nothing but errors");
  line.epilog(exit_code_help());
}

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
  add_report(line, options.json, options.quiet);
  if (auto text = line.parse(arguments, kProgram)) return PrintText{*text};
  if (!replicas.empty()) options.replicas = parse_numbers(replicas);
  return options;
}

BenchCommand parse_ops(const Arguments& arguments) {
  OpsOptions options;
  CommandLine line(std::string(kProgram) + " ops [options]",
                   "Measures single operations on one CPU core, and beside them what the core can "
                   "do at best: multiply-adds in registers, and bytes a second for working sets in "
                   "cache and memory. Rounds are interleaved. LOCKSTEP_CPU_ISA=baseline, avx2 or "
                   "avx512 in the environment names another instruction set than the best.");
  line.group("What to measure");
  line.value("--filter", options.filter, "TEXT",
             "only operations with TEXT in their name and shape, as in conv2d_forward or 8->16");
  line.value("--rounds", options.rounds, "N", "measurements of every operation (5)",
             whole_number(1, 1000));
  add_report(line, options.json, options.quiet);
  if (auto text = line.parse(arguments, kProgram)) return PrintText{*text};
  return options;
}

std::vector<std::string> parse_names(const std::string& text) {
  std::vector<std::string> names;
  std::stringstream stream(text + ',');
  for (std::string name; std::getline(stream, name, ',');) names.push_back(name);
  return names;
}

/// Different models of those that peers have too.
Check peer_models() {
  return [](const std::string& text) -> std::string {
    const std::vector<std::string> known = PeersOptions{}.models;
    std::set<std::string> seen;
    for (const std::string& name : parse_names(text)) {
      if (std::find(known.begin(), known.end(), name) == known.end() || !seen.insert(name).second) {
        return message("'", text,
                       "'; want different ones of article, lenet5, wide_cnn with commas "
                       "between them");
      }
    }
    return {};
  };
}

BenchCommand parse_peers(const Arguments& arguments) {
  PeersOptions options;
  std::string models;
  std::string cores;
  CommandLine line(
      std::string(kProgram) + " peers [options]",
      "Trains the same nets on the same samples with this library and with others on this "
      "machine's "
      "CPU: PyTorch, where a Python has it, and oneDNN, where the build has lockstep_peer_onednn "
      "(LOCKSTEP_PEERS=ON). Every measurement is a process of its own, rounds are interleaved, and "
      "ratios are taken round by round. What cannot be measured is said in one line.");
  line.group("What to measure");
  line.value("--models", models, "LIST", "of article, lenet5, wide_cnn (all)", peer_models());
  line.value("--cores", cores, "LIST", "threads that train (1,2, as many as this process may use)",
             number_list(kMaxReplicas));
  line.value("--rounds", options.rounds, "N", "measurements of every system (3)",
             whole_number(1, 1000));
  add_limit(line, "--samples", options.samples, 1,
            "samples of an epoch (all; wide_cnn 2000). With fewer than 10000 the first epoch is "
            "warm-up, and the median of three more counts");
  add_data(line, options.data.dataset, options.data.folder, "synthetic");
  line.group("PyTorch");
  line.value("--python", options.python, "PROGRAM", "the Python that has it (python3)");
  line.value("--blas", options.blas, "DIR",
             "folder of a libblas.so.3, as OpenBLAS has one, that the setting 'best' loads instead "
             "of its own");
  add_report(line, options.json, options.quiet);
  if (auto text = line.parse(arguments, kProgram)) return PrintText{*text};
  if (!models.empty()) options.models = parse_names(models);
  if (!cores.empty()) options.cores = parse_numbers(cores);
  return options;
}

BenchCommand parse_peer(const Arguments& arguments) {
  PeerOptions options;
  CommandLine line(std::string(kProgram) + " peer --file FILE --samples N [options]",
                   "One training as peers measures it, with its figures as a line of JSON.");
  line.group("What to measure");
  line.value("--model", options.model, "NAME", "a model of the zoo (article)", model_name());
  line.value("--cores", options.cores, "N", "replicas (1)", whole_number(1, kMaxReplicas));
  line.value("--file", options.file, "FILE",
             "28x28 bytes a sample, then a byte with its class each")
      ->required();
  line.value("--samples", options.samples, "N", "samples in the file", whole_number(1, kMaxCount))
      ->required();
  line.value("--epochs", options.epochs, "N", "epochs that count (1)", whole_number(1, 1000));
  line.value("--warm-up", options.warm_up, "N", "epochs before them (0)", whole_number(0, 1000));
  line.value("--started", options.started, "NS", "steady clock when the process was started (now)",
             whole_number(0, std::numeric_limits<std::int64_t>::max()));
  line.epilog(exit_code_help());
  if (auto text = line.parse(arguments, kProgram)) return PrintText{*text};
  return options;
}

struct Command {
  const char* name;
  const char* help;
  BenchCommand (*parse)(const Arguments&);
};

constexpr Command kCommands[] = {
    {"scaling", "training with different numbers of replicas", parse_scaling},
    {"ops", "single operations beside what the machine can do", parse_ops},
    {"peers", "training beside other libraries", parse_peers},
    {"peer", "one training of those, as a process of its own", parse_peer}};

std::string help_text() {
  std::string text = message(
      "usage: ", kProgram, " COMMAND [options]\n\nMeasures Lockstep on this machine. Commands:\n");
  for (const Command& command : kCommands) {
    text += message("  ", left(command.name, 10), command.help, '\n');
  }
  return text + message("\n'", kProgram, " COMMAND --help' lists the options.\n");
}

std::string names() {
  std::string text;
  for (const Command& command : kCommands)
    text += (text.empty() ? "" : ", ") + std::string(command.name);
  return text;
}

}  // namespace

BenchCommand parse_bench(const Arguments& arguments) {
  for (const Command& command : kCommands) {
    if (!arguments.empty() && arguments[0] == command.name) {
      return command.parse(Arguments(arguments.begin() + 1, arguments.end()));
    }
  }
  for (const std::string& argument : arguments) {
    if (argument == "--version") return PrintText{version_text(kProgram)};
    if (argument == "--help" || argument == "-h") return PrintText{help_text()};
  }
  throw UsageError(message(
      kProgram, ": ", arguments.empty() ? "no command given" : "no command '" + arguments[0] + "'",
      "; want one of ", names(), " (--help tells more)"));
}

}  // namespace lockstep::apps
