#include "apps/options.h"

#include "lockstep/core/error.h"

#include "apps/option_groups.h"

namespace lockstep::apps {

namespace {

constexpr const char* kProgram = "mnist_multi_gpu";

void add_batches(CommandLine& line, TrainOptions& options, CLI::Option*& batch,
                 CLI::Option*& per_replica, std::string& last_batch, std::string& reduce) {
  line.group("Devices and batches");
  line.value(
      "--devices", options.devices, "LIST",
      "auto, cpu, cpu:COUNT, cuda, cuda:0,2 or cuda:0-3; auto takes every GPU, else every core "
      "with at least 16 samples of a batch for each (auto)");
  batch =
      line.value("--batch-size", options.batch_size, "N",
                 "samples of one step over all replicas: the same training on any machine (128)",
                 whole_number(1, kMaxBatch));
  per_replica = line.value("--batch-per-replica", options.batch_per_replica, "N",
                           "samples of one step for each replica, as the article counts them",
                           whole_number(1, kMaxBatch));
  line.value(
      "--last-batch", last_batch, "WHAT",
      "keep the samples that do not fill a batch as a step of their own, or drop them (keep)",
      one_of({"keep", "drop"}));
  line.value("--reduce", reduce, "MODE",
             "fast, or invariant: the same weights bit for bit for every number of replicas (fast)",
             one_of({"fast", "invariant"}));
  line.value("--shards", options.shards, "N",
             "parts that a batch is cut in (fast: one a replica; invariant: 8)",
             whole_number(1, kMaxBatch));
  line.value("--bucket-bytes", options.bucket_bytes, "N",
             "bytes of gradients that are added up in one go (1048576)",
             whole_number(64, kMaxCount));
  line.value("--precision", options.precision, "NAME", "fp32; tf32 needs a GPU (fp32)",
             one_of({"fp32", "tf32"}));
  line.value("--data-resident", options.data_resident, "WHERE",
             "on: the samples lie on every GPU; off: they are sent while it trains; auto: on when "
             "they take at most half of its free memory (auto)",
             one_of({"auto", "on", "off"}));
  line.value("--on-nonfinite", options.on_nonfinite, "WHAT",
             "what a step does whose gradient is not finite: stop, saying where, or skip it (stop)",
             one_of({"stop", "skip"}));
  line.value("--compare-every", options.compare_every, "N",
             "steps between comparisons of all replicas, bit by bit; 0: never (1000)",
             whole_number(0, kMaxCount));
  line.flag("--no-fuse", options.no_fuse,
            "compute neighbouring layers one by one where one operation could do them together; "
            "the same results within rounding");
  line.flag("--no-graph", options.no_graph,
            "give a GPU every operation of a step on its own; the same bits, slower, easier to "
            "find a fault in");
  line.flag("--pin", options.pin,
            "keep the thread of every replica on a core of its own; good where nothing else runs");
}

void add_training(CommandLine& line, TrainOptions& options, std::string& epsilon_place) {
  line.group("Training");
  line.value("--epochs", options.epochs, "N", "passes over the training data (2)",
             whole_number(1, 1000000));
  line.value("--model", options.model, "NAME", "article, lenet5, wide_cnn or mlp (article)",
             model_name());
  line.value("--init-from", options.init_from, "PATH",
             "start from the weights of a run, a checkpoint or a safetensors file");
  line.value("--seed", options.seed, "N", "of initial weights, order of samples and dropout (0)",
             seed_number());
  line.value("--optimizer", options.optimizer, "NAME", "adam, adamw or sgd (adam)",
             one_of({"adam", "adamw", "sgd"}));
  line.value("--lr", options.lr, "X", "learning rate of the first epoch (0.01)",
             real_number(0, 1e6, true));
  line.value("--lr-decay", options.lr_decay, "X",
             "factor of the learning rate after every epoch (0.7)", real_number(0, 1e6));
  line.value("--lr-min", options.lr_min, "X", "least learning rate (1e-05)", real_number(0, 1e6));
  line.value("--momentum", options.momentum, "X", "of sgd (0)", real_number(0, 1));
  line.value("--weight-decay", options.weight_decay, "X", "of adamw (0.01)", real_number(0, 1e6));
  line.value(
      "--epsilon-place", epsilon_place, "NAME",
      "where Adam adds its epsilon: pytorch (after the bias correction) or tensorflow (before it) "
      "(the model article: tensorflow, others: pytorch)",
      one_of({"pytorch", "tensorflow"}));
  line.value("--l2", options.l2, "X",
             "weight of the sum of the squared weights / 2 in the loss (0)", real_number(0, 1e6));
  line.value("--clip-norm", options.clip_norm, "X",
             "largest norm of the gradient; 0 clips nothing (0)", real_number(0, 1e30));
  line.value("--early-stopping", options.early_stopping, "N",
             "end after N epochs without a lower validation loss", whole_number(1, 1000000));
  line.flag("--restore-best", options.restore_best,
            "end with the weights of the epoch with the lowest validation loss");
}

void add_checkpoints(CommandLine& line, TrainOptions& options) {
  line.group("Checkpoints, at the begin, after every epoch and when a signal ends training");
  line.value(
      "--resume", options.resume, "DIR",
      "go on with the run in this folder (runs/latest) from its newest checkpoint; options are "
      "that run's, and only devices, epochs, checkpoints and output may be others");
  line.value("--checkpoint-every", options.checkpoint_every, "N",
             "one also after every N steps; 0: not by steps (0)", whole_number(0, kMaxCount));
  line.value("--checkpoint-minutes", options.checkpoint_minutes, "X",
             "one also when the last is X minutes old; 0: not by time (0)", real_number(0, 1e6));
  line.value("--keep-checkpoints", options.keep_checkpoints, "N",
             "keep the last N and the best by validation (3)", whole_number(1, 1000000));
}

void add_train_data(CommandLine& line, DataOptions& data) {
  line.group("Data");
  add_data(line, data.dataset, data.folder, "mnist");
  add_limit(line, "--limit-train", data.limit_train, 1, "train on the first N samples only");
  add_limit(line, "--limit-validation", data.limit_validation, 0,
            "validate on the first N samples only; 0 leaves validation out");
  add_limit(line, "--limit-test", data.limit_test, 0,
            "test on the first N samples only; 0 leaves the test out");
}

void check_together(const TrainOptions& options, bool lr_min_given) {
  if (options.lr < options.lr_min) {
    throw UsageError(
        message("--lr ", options.lr, " is below --lr-min ", options.lr_min,
                lr_min_given ? "; want at most --lr" : ", the default; give --lr-min as well"));
  }
  if (options.momentum > 0 && options.optimizer != "sgd") {
    throw UsageError(message("--momentum belongs to --optimizer sgd, not ", options.optimizer));
  }
  if (options.weight_decay != TrainOptions{}.weight_decay && options.optimizer != "adamw") {
    throw UsageError(
        message("--weight-decay belongs to --optimizer adamw, not ", options.optimizer));
  }
  if (options.momentum >= 1) throw UsageError("--momentum: 1 never forgets; want a number below 1");
  if (options.epsilon_place && options.optimizer != "adam") {
    throw UsageError(
        message("--epsilon-place belongs to --optimizer adam, not ", options.optimizer));
  }
  if (options.data.limit_validation == 0 && (options.early_stopping > 0 || options.restore_best)) {
    throw UsageError(
        "--early-stopping and --restore-best need validation: --limit-validation above 0");
  }
}

MnistCommand parse_train(const Arguments& arguments) {
  TrainOptions options;
  CommandLine line(
      std::string(kProgram) + " [train] [options]",
      "Trains a network on several devices in lockstep. Without options: the article's CNN on "
      "MNIST for 2 epochs on every device there is. Other commands: eval, predict, parity, replay, "
      "doctor; "
      "'mnist_multi_gpu eval --help' tells about one of them.");
  CLI::Option* batch = nullptr;
  CLI::Option* per_replica = nullptr;
  std::string last_batch = "keep";
  std::string reduce = "fast";
  std::string epsilon_place;
  add_train_data(line, options.data);
  add_batches(line, options, batch, per_replica, last_batch, reduce);
  add_training(line, options, epsilon_place);
  add_checkpoints(line, options);
  line.group("Output");
  line.value("--out", options.out, "DIR",
             "folder of the run, new or empty (runs/ and the time, with the link "
             "runs/latest); holds weights.safetensors, metrics.csv, metrics.jsonl, config.json and "
             "checkpoints");
  add_output(line, options.output);
  line.epilog(
      "Two runs with one seed on the same devices give the same bits in weights and metrics, but "
      "for\n"
      "the columns train_seconds, eval_seconds, seconds and samples_per_second.\n");
  line.epilog(exit_code_help());
  if (auto text = line.parse(arguments, kProgram)) return PrintText{*text};

  if (batch->count() > 0 && per_replica->count() > 0) {
    throw UsageError("--batch-size and --batch-per-replica: give one of them");
  }
  options.last_batch = last_batch == "drop" ? LastBatch::drop : LastBatch::keep;
  options.reduce = reduce == "invariant" ? Reduce::invariant : Reduce::fast;
  if (!epsilon_place.empty()) {
    options.epsilon_place =
        epsilon_place == "tensorflow" ? EpsilonPlace::inside : EpsilonPlace::outside;
  }
  check_together(options, options.lr_min != TrainOptions{}.lr_min);
  if (!options.resume.empty() && !options.out.empty()) {
    throw UsageError("--resume goes on in the folder of its run; leave out --out");
  }
  options.settings = line.settings();
  // The two are one choice.
  if (options.batch_per_replica > 0) options.settings.erase("--batch-size");
  if (options.batch_per_replica == 0) options.settings.erase("--batch-per-replica");
  options.given = line.given();
  return options;
}

void add_weights(CommandLine& line, std::filesystem::path& weights, std::string& model) {
  line.value("--weights", weights, "PATH", "a run folder or a safetensors file (runs/latest)");
  line.value("--model", model, "NAME",
             "article, lenet5, wide_cnn or mlp (what the run's config.json says, else article)",
             model_name());
}

MnistCommand parse_eval(const Arguments& arguments) {
  EvalOptions options;
  CommandLine line(
      std::string(kProgram) + " eval [options]",
      "Evaluates trained weights exactly: every sample of the split once, the same figures "
      "for any number of devices.");
  line.group("What to evaluate");
  add_weights(line, options.weights, options.model);
  add_data(line, options.dataset, options.folder, "the run's, else mnist");
  line.value("--split", options.split, "NAME", "train, validation or test (test)",
             one_of({"train", "validation", "test"}));
  add_limit(line, "--limit", options.limit, 1, "the first N samples only");
  line.value("--devices", options.devices, "LIST", "as in training (auto)");
  line.group("Output");
  line.value("--predictions", options.predictions, "FILE",
             "write a CSV file with number, class and prediction of every sample");
  add_output(line, options.output);
  line.epilog(exit_code_help());
  if (auto text = line.parse(arguments, kProgram)) return PrintText{*text};
  return options;
}

MnistCommand parse_predict(const Arguments& arguments) {
  PredictOptions options;
  CommandLine line(
      std::string(kProgram) + " predict [options] FILE...",
      "Says which digit a PNG, JPEG or PGM picture shows. The picture is brought to what MNIST "
      "looks like first: light on dark, scaled into 20 x 20, centred by mass in 28 x 28.");
  line.group("What to predict");
  line.value("files", options.images, "FILE...", "pictures of one digit each");
  add_weights(line, options.weights, options.model);
  line.group("Output");
  line.flag("--no-preview", options.no_preview, "leave out the drawing of what the network sees");
  add_output(line, options.output);
  line.epilog(exit_code_help());
  if (auto text = line.parse(arguments, kProgram)) return PrintText{*text};
  if (options.images.empty()) {
    throw UsageError(
        "predict: no picture given; name PNG, JPEG or PGM files (--help lists the options)");
  }
  return options;
}

MnistCommand parse_parity(const Arguments& arguments) {
  ParityOptions options;
  std::string replicas;
  CommandLine line(
      std::string(kProgram) + " parity [options]",
      "Trains the same model apart with different numbers of replicas in invariant mode, over "
      "uneven last batches and an evaluation, and compares the weight files byte for byte.");
  line.group("What to compare");
  line.value("--kind", options.kind, "KIND", "cpu or cuda (cpu)", one_of({"cpu", "cuda"}));
  line.value("--replicas", replicas, "LIST", "numbers of replicas (1,2,4,8)",
             number_list(kMaxReplicas));
  line.value(
      "--shards", options.shards, "N",
      "parts that a batch is cut in, a power of two and a multiple of every number of replicas (8)",
      whole_number(1, kMaxReplicas));
  line.value("--steps", options.steps, "N", "training steps of every run, at least 50 (50)",
             whole_number(50, kMaxCount));
  line.value("--batch-size", options.batch_size, "N", "samples of one step (128)",
             whole_number(1, kMaxBatch));
  line.value("--model", options.model, "NAME", "article, lenet5, wide_cnn or mlp (article)",
             model_name());
  line.value("--seed", options.seed, "N", "of weights, order of samples and dropout (0)",
             seed_number());
  add_data(line, options.data.dataset, options.data.folder, "mnist");
  line.group("Output");
  add_output(line, options.output);
  line.epilog(exit_code_help());
  if (auto text = line.parse(arguments, kProgram)) return PrintText{*text};
  if (!replicas.empty()) options.replicas = parse_numbers(replicas);
  return options;
}

MnistCommand parse_replay(const Arguments& arguments) {
  ReplayOptions options;
  CommandLine line(std::string(kProgram) + " replay [options] [RUN]",
                   "Trains again from a checkpoint of a run, up to the next one, and says whether "
                   "every weight and moment comes out bit for bit, or which tensor differs first. "
                   "Where no checkpoint stands at the end, it trains twice and compares the two.");
  line.group("What to train again");
  line.value("run", options.run, "RUN", "folder of the run (runs/latest)");
  line.value("--from", options.from, "NAME",
             "checkpoint to begin at, such as step-00000430 (the last but one)", some_text());
  line.value("--steps", options.steps, "N", "steps to train (up to the next checkpoint)",
             whole_number(1, kMaxCount));
  line.value("--devices", options.devices, "LIST", "as train has it (the run's)");
  line.group("Output");
  add_output(line, options.output);
  line.epilog(exit_code_help());
  if (auto text = line.parse(arguments, kProgram)) return PrintText{*text};
  return options;
}

MnistCommand parse_doctor(const Arguments& arguments) {
  DoctorOptions options;
  CommandLine line(
      std::string(kProgram) + " doctor [options]",
      "Looks for what would keep a training on this machine from going well: cores, GPUs, driver, "
      "libraries, copies between GPUs, shared memory, data files, room and rights. Each check "
      "passes, warns or fails, and says what to do. It changes nothing.");
  line.group("What to look at");
  line.value("--devices", options.devices, "LIST",
             "as in training; a GPU that is named here and cannot be used is a failure (auto)");
  add_data(line, options.data.dataset, options.data.folder, "mnist");
  line.value("--out", options.out, "DIR", "folder where a run would be written (runs)");
  line.group("Output");
  add_output(line, options.output);
  line.epilog(exit_code_help());
  if (auto text = line.parse(arguments, kProgram)) return PrintText{*text};
  return options;
}

}  // namespace

std::vector<std::string> dataset_names() {
  return {"mnist", "fashion-mnist", "synthetic"};
}

MnistCommand parse_mnist(const Arguments& arguments) {
  if (arguments.empty() || arguments[0].starts_with('-')) return parse_train(arguments);
  const Arguments rest(arguments.begin() + 1, arguments.end());
  if (arguments[0] == "train") return parse_train(rest);
  if (arguments[0] == "eval") return parse_eval(rest);
  if (arguments[0] == "predict") return parse_predict(rest);
  if (arguments[0] == "parity") return parse_parity(rest);
  if (arguments[0] == "replay") return parse_replay(rest);
  if (arguments[0] == "doctor") return parse_doctor(rest);
  throw UsageError(
      message(kProgram, ": no command '", arguments[0],
              "'; want train, eval, predict, parity, replay or doctor (--help lists the options)"));
}

}  // namespace lockstep::apps
