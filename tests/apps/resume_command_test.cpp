// `mnist_multi_gpu --resume`: a run that was cut goes on as if it had not been.
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <random>

#include "lockstep/core/error.h"
#include "lockstep/io/checkpoint_folder.h"

#include "apps/mnist_multi_gpu/commands.h"
#include "apps/mnist_multi_gpu/resume.h"
#include "apps/process.h"
#include "apps/read_text.h"
#include "apps/setup.h"
#include "apps/training_run.h"
#include "io/file_limit.h"
#include "support/catch.h"
#include "support/system_faults.h"
#include "support/throws.h"

namespace lockstep {

using test::contains;
using test::json_lines;
using test::ProcessResult;
using test::read_text;
using test::run_process;
using test::ScratchFolder;
using test::small_training;

namespace fs = std::filesystem;

namespace {

using Arguments = std::vector<std::string>;

/// A training with all that a checkpoint must keep: uneven batches, an L2 term, early stopping.
Arguments whole_training(const std::string& out, const Arguments& more = {}) {
  Arguments arguments = small_training(out, {"--epochs", "3", "--l2", "0.0001", "--seed", "7",
                                             "--early-stopping", "9", "--restore-best", "--quiet"});
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

/// metrics.csv without its columns of times.
std::string metrics_of(const std::string& run) {
  std::string kept;
  std::istringstream lines(read_text(run + "/metrics.csv"));
  for (std::string line; std::getline(lines, line);) {
    std::size_t end = 0;
    for (int column = 0; column < 12; ++column) end = line.find(',', end + 1);
    kept += line.substr(0, end) + '\n';
  }
  return kept;
}

void check_same_run(const std::string& run, const std::string& expected) {
  CHECK(read_text(run + "/weights.safetensors") == read_text(expected + "/weights.safetensors"));
  CHECK(metrics_of(run) == metrics_of(expected));
  CHECK(json_lines(read_text(run + "/metrics.jsonl")).size() ==
        json_lines(read_text(expected + "/metrics.jsonl")).size());
}

/// Starts the training and interrupts it once `sign` was printed.
ProcessResult interrupted(const Arguments& arguments, const std::string& sign) {
  bool sent = false;
  return run_process("mnist_multi_gpu", arguments,
                     {.on_output = [&](const std::string& text, int pid) {
                       if (sent || !contains(text, sign)) return;
                       sent = true;
                       kill(pid, SIGTERM);
                     }});
}

}  // namespace

TEST_CASE("resume: interrupted and gone on with is the run without the break", "[apps]") {
  const ScratchFolder folder;
  Arguments arguments = whole_training(folder / "whole");
  REQUIRE(run_process("mnist_multi_gpu", arguments).code == 0);
  arguments = whole_training(folder / "cut");
  arguments.erase(std::find(arguments.begin(), arguments.end(), "--quiet"));
  const ProcessResult cut = interrupted(arguments, "Epoch:1,");
  REQUIRE(cut.code == 130);
  CHECK(contains(cut.out, "go on with: mnist_multi_gpu --resume " + (folder / "cut")));
  const ProcessResult rest = run_process("mnist_multi_gpu", {"--resume", folder / "cut", "--json"});
  INFO(rest.err);
  REQUIRE(rest.code == 0);
  CHECK(rest.err.empty());
  check_same_run(folder / "cut", folder / "whole");
  const auto start = json_lines(rest.out).front();
  CHECK(contains(start["resumed_from"].get<std::string>(), folder / "cut/checkpoints/step-"));
  CHECK(start["resumed_step"].get<int>() >= 32);
  CHECK(start["bit_equal"] == true);
  CHECK(start["bit_differences"].empty());
  CHECK(start["seed"] == 7);
  const auto result = json_lines(rest.out).back();
  CHECK(result["epochs"] == 3);
  CHECK(fs::exists(result["checkpoint"].get<std::string>()));
  CHECK(fs::exists(result["best_checkpoint"].get<std::string>()));
  // A finished run has nothing left to do, and its end is the same.
  CHECK(run_process("mnist_multi_gpu", {"--resume", folder / "cut", "--quiet"}).code == 0);
  check_same_run(folder / "cut", folder / "whole");
  // Its checkpoints' weights are weights like any others.
  const ProcessResult eval = run_process(
      "mnist_multi_gpu",
      {"eval", "--limit", "100", "--weights", result["best_checkpoint"].get<std::string>()});
  INFO(eval.err);
  CHECK(eval.code == 0);
  CHECK(contains(eval.out, "data: synthetic"));
}

TEST_CASE("resume: more epochs are what a longer run would have had", "[apps]") {
  const ScratchFolder folder;
  REQUIRE(run_process("mnist_multi_gpu", whole_training(folder / "whole")).code == 0);
  Arguments shorter = whole_training(folder / "run");
  *(std::find(shorter.begin(), shorter.end(), "--epochs") + 1) = "1";
  REQUIRE(run_process("mnist_multi_gpu", shorter).code == 0);
  REQUIRE(run_process("mnist_multi_gpu", {"--resume", folder / "run", "--epochs", "3"}).code == 0);
  check_same_run(folder / "run", folder / "whole");
}

TEST_CASE("resume: a run that was killed counts for more than the weights from before", "[apps]") {
  const ScratchFolder folder;
  const std::string run = folder / "run";
  const std::string own = run + "/weights.safetensors";
  REQUIRE(run_process("mnist_multi_gpu", small_training(run, {"--epochs", "1", "--quiet"})).code ==
          0);
  const auto weights = [&] { return apps::weights_file(run, "--weights"); };
  CHECK(weights() == own);
  const auto go_on_until = [&](int signal) {
    bool sent = false;
    const std::string epoch = R"("event":"epoch")";
    return run_process("mnist_multi_gpu", {"--resume", run, "--json", "--epochs", "100000"},
                       {.on_output =
                            [&](const std::string& text, int pid) {
                              // The first epoch's checkpoint is there when the second one has
                              // ended.
                              if (sent || text.find(epoch, text.find(epoch) + 1) == text.npos)
                                return;
                              sent = true;
                              kill(pid, signal);
                            }})
        .code;
  };
  REQUIRE(go_on_until(SIGKILL) == 128 + SIGKILL);
  const auto newest = newest_checkpoint(run + "/checkpoints");
  REQUIRE(newest);
  REQUIRE(newest->checkpoint.step.step > 32);
  CHECK(weights() == newest->path / "weights.safetensors");
  const auto eval =
      run_process("mnist_multi_gpu", {"eval", "--limit", "10", "--json", "--weights", run});
  CHECK(json_lines(eval.out).at(0)["weights"] == (newest->path / "weights.safetensors").string());
  // Nothing is lost, and without a checkpoint that can be read they count.
  CHECK(fs::exists(own));
  fs::rename(run + "/checkpoints", run + "/away");
  fs::create_directories(run + "/checkpoints/step-00000099");
  CHECK(weights() == own);
  fs::remove_all(run + "/checkpoints");
  CHECK(weights() == own);
  fs::rename(run + "/away", run + "/checkpoints");
  // An end in order writes them anew.
  REQUIRE(go_on_until(SIGTERM) == 130);
  CHECK(weights() == own);
}

TEST_CASE("resume: other options are refused by name, other devices go on and say so", "[apps]") {
  const ScratchFolder folder;
  const Arguments quick{"--epochs", "1", "--quiet", "--batch-per-replica", "16"};
  Arguments arguments = small_training(folder / "run", quick);
  arguments.erase(std::find(arguments.begin(), arguments.end(), "--batch-size"),
                  std::find(arguments.begin(), arguments.end(), "--batch-size") + 2);
  *(std::find(arguments.begin(), arguments.end(), "--devices") + 1) = "cpu:4";
  REQUIRE(run_process("mnist_multi_gpu", arguments).code == 0);
  const auto resume = [&](const Arguments& more) {
    Arguments all{"--resume", folder / "run", "--json"};
    all.insert(all.end(), more.begin(), more.end());
    return run_process("mnist_multi_gpu", all);
  };
  const ProcessResult refused = resume({"--lr", "0.5", "--seed", "3", "--restore-best"});
  CHECK(refused.code == 2);
  CHECK(contains(refused.err, "--lr is 0.01 in that run and 0.5 here"));
  CHECK(contains(refused.err, "--seed is 0 in that run and 3 here"));
  CHECK(contains(refused.err, "--restore-best is not set in that run and set here"));
  CHECK(contains(refused.err, "--init-from " + (folder / "run/checkpoints/step-00000032")));
  CHECK(resume({"--out", folder / "other"}).code == 2);
  CHECK(resume({"--batch-size", "32"}).code == 2);
  CHECK(resume({"--init-from", "any"}).code == 2);

  // What the run has may be said again; the batch is the run's, not three times 16.
  const ProcessResult three =
      resume({"--devices", "cpu:3", "--epochs", "2", "--lr", "0.010", "--batch-per-replica", "16"});
  INFO(three.err);
  REQUIRE(three.code == 0);
  const auto start = json_lines(three.out).front();
  CHECK(start["batch_size"] == 64);
  CHECK(start["replicas"] == 3);
  CHECK(start["bit_equal"] == false);
  CHECK(start["bit_differences"][0] == "3 replicas in fast mode instead of 4");
  CHECK(json_lines(read_text(folder / "run/metrics.jsonl")).size() == 2);
}

TEST_CASE("resume: a damaged newest checkpoint is named, and the one before it used", "[apps]") {
  const ScratchFolder folder;
  REQUIRE(run_process("mnist_multi_gpu", whole_training(folder / "whole")).code == 0);
  REQUIRE(
      run_process("mnist_multi_gpu", whole_training(folder / "run", {"--checkpoint-every", "10"}))
          .code == 0);
  const std::string newest = folder / "run/checkpoints/step-00000096";
  fs::resize_file(newest + "/optimizer.safetensors", 1000);
  fs::resize_file(folder / "run/weights.safetensors", 10);
  const ProcessResult run = run_process("mnist_multi_gpu", {"--resume", folder / "run"});
  CHECK(run.code == 0);
  CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
  CHECK(contains(run.err, "warning: " + newest + "/optimizer.safetensors: "));
  CHECK(contains(run.err,
                 "going on from the one before, " + (folder / "run/checkpoints/step-00000090")));
  check_same_run(folder / "run", folder / "whole");
  CHECK(fs::exists(folder / "run/checkpoints/aside-step-00000096"));
}

TEST_CASE("resume: folders with no run, a run in use and a run without a checkpoint", "[apps]") {
  const ScratchFolder folder;
  const auto resume = [&](const std::string& run) {
    return run_process("mnist_multi_gpu", {"--resume", run, "--quiet"});
  };
  CHECK(contains(resume(folder / "none").err, "there is no such run folder"));
  CHECK(resume(folder / "none").code == 7);
  fs::create_directory(folder / "empty");
  const ProcessResult empty = resume(folder / "empty");
  CHECK(empty.code == 7);
  CHECK(contains(empty.err, "start one with --out"));

  REQUIRE(run_process("mnist_multi_gpu", whole_training(folder / "whole")).code == 0);
  REQUIRE(run_process("mnist_multi_gpu", whole_training(folder / "run")).code == 0);
  fs::remove_all(folder / "run/checkpoints");
  const std::string weights = test::read_text(folder / "run/weights.safetensors");
  CHECK(resume(folder / "run").code == 7);
  CHECK(contains(resume(folder / "run").err, "--init-from"));
  CHECK(test::read_text(folder / "run/weights.safetensors") == weights);
  fs::remove(folder / "run/weights.safetensors");
  REQUIRE(resume(folder / "run").code == 0);
  check_same_run(folder / "run", folder / "whole");

  // Such a run becomes the latest with its first checkpoint, once.
  fs::create_directory(folder / "runs");
  const std::string timed = folder / "runs/20250131-235958";
  fs::rename(folder / "run", timed);
  fs::remove_all(timed + "/checkpoints");
  fs::remove(timed + "/weights.safetensors");
  REQUIRE(resume(timed).code == 0);
  CHECK(fs::read_symlink(folder / "runs/latest") == "20250131-235958");
  fs::remove(folder / "runs/latest");
  fs::create_directory_symlink("another", folder / "runs/latest");
  REQUIRE(run_process("mnist_multi_gpu", {"--resume", timed, "--quiet", "--epochs", "4"}).code ==
          0);
  CHECK(fs::read_symlink(folder / "runs/latest") == "another");

  ProcessResult second;
  const ProcessResult first =
      run_process("mnist_multi_gpu", small_training(folder / "used", {"--epochs", "100000"}),
                  {.on_output = [&](const std::string& text, int pid) {
                    if (!second.err.empty() || !contains(text, "Epoch:1,")) return;
                    second = resume(folder / "used");
                    kill(pid, SIGTERM);
                  }});
  CHECK(first.code == 130);
  CHECK(second.code == 7);
  CHECK(contains(second.err, "another process trains in this folder"));
}

TEST_CASE(
    "resume: a configuration with options that are none is refused, and none of its bytes shown",
    "[apps]") {
  const ScratchFolder folder;
  REQUIRE(run_process("mnist_multi_gpu", whole_training(folder / "run")).code == 0);
  fs::remove_all(folder / "run/checkpoints");
  fs::remove(folder / "run/weights.safetensors");
  const nlohmann::json config = nlohmann::json::parse(read_text(folder / "run/config.json"));
  const auto with = [&](const std::string& name, const std::string& text, const Arguments& more) {
    nlohmann::json hostile = config;
    hostile["options"][name] = text;
    std::ofstream(folder / "run/config.json") << hostile;
    Arguments arguments{"--resume", folder / "run", "--quiet"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_process("mnist_multi_gpu", arguments);
  };
  const std::pair<std::string, std::string> bad[] = {
      {"--help", ""},          {"--version", ""},           {"eval", ""},
      {"--lr", "\x1b[31mred"}, {"--\x1b[31m", "1"},         {"--model", "\x1b]0;title\a"},
      {"--seed", "-1"},        {"--devices", "\x1b[2Jcpu"}, {"--epochs", "--help"}};
  for (const auto& [name, text] : bad) {
    const ProcessResult run = with(name, text, {});
    INFO(name << ": " << run.err);
    CHECK((run.code == 7 || run.code == 2));
    CHECK_FALSE(contains(run.err, "\x1b"));
    CHECK(run.out.empty());
    CHECK(contains(run.err, "; "));
  }
  const ProcessResult other = with("--lr", "\x1b[31mred", {"--lr", "0.5"});
  CHECK(other.code == 2);
  CHECK_FALSE(contains(other.err, "\x1b"));
}

TEST_CASE("resume: a place that cannot be written is found before training, and keeps what it has",
          "[apps]") {
  const ScratchFolder folder;
  const std::string out = folder / "run";
  const auto train = [](const Arguments& arguments) {
    return test::message_of<IoError>([&] {
      static_cast<void>(
          apps::run_train(std::get<apps::TrainOptions>(apps::parse_mnist(arguments))));
    });
  };
  const std::pair<test::Refusal, int> refusals[] = {{test::Refusal::make_file, EACCES},
                                                    {test::Refusal::make_folder, EACCES},
                                                    {test::Refusal::rename, EOPNOTSUPP}};
  for (const auto& [what, error] : refusals) {
    const test::RefusingFileSystem refusing(what, error);
    const std::string text = train(whole_training(out));
    INFO(text);
    CHECK(contains(text, out));
    CHECK(contains(text, "name a place"));
    CHECK_FALSE(fs::exists(out));
  }
  const Arguments often{"--checkpoint-every", "10", "--keep-checkpoints", "9"};
  REQUIRE(run_process("mnist_multi_gpu", whole_training(out, often)).code == 0);
  // It would go on from the epoch before the last.
  for (const char* newer : {"96", "90", "80"}) {
    fs::remove_all(out + "/checkpoints/step-000000" + newer);
  }
  const std::string metrics = read_text(out + "/metrics.csv");
  for (const auto& [what, error] : refusals) {
    const test::RefusingFileSystem refusing(what, error);
    CHECK(contains(train({"--resume", out, "--quiet"}), "name a place"));
    // The run's own folder too, where metrics and weights go, not the checkpoints' alone.
    apps::TrainOptions options;
    options.resume = out;
    CHECK(contains(test::message_of<IoError>([&] { static_cast<void>(apps::open_run(options)); }),
                   "name a place"));
    CHECK(read_text(out + "/metrics.csv") == metrics);
    CHECK(fs::exists(out + "/weights.safetensors"));
  }
}

TEST_CASE("resume: an empty name is refused, as of a variable that is not set", "[apps]") {
  for (const char* option : {"--resume", "--init-from", "--out", "--data"}) {
    const ProcessResult run = run_process("mnist_multi_gpu", {option, ""});
    CHECK(run.code == 2);
    CHECK(contains(run.err, std::string(option) + ": ''; want a name that is not empty"));
  }
  CHECK(run_process("mnist_multi_gpu", {"eval", "--weights", ""}).code == 2);
  CHECK(run_process("mnist_multi_gpu", {"replay", ""}).code == 2);
  CHECK(run_process("mnist_multi_gpu", {"replay", "--from", ""}).code == 2);
}

TEST_CASE("resume: a disk without room is found before training", "[apps]") {
  const ScratchFolder folder;
  const test::FileLimit limit(20000);
  const ProcessResult run = run_process("mnist_multi_gpu", small_training(folder / "run"));
  CHECK(run.code == 7);
  CHECK(contains(run.err, "File too large"));
  CHECK_FALSE(contains(run.out, "Train loss"));
  CHECK(fs::is_empty(folder / "run/checkpoints"));
}

TEST_CASE("resume: killed at any time, always gone on with, always the same end", "[apps]") {
  const char* wanted = std::getenv("LOCKSTEP_KILLS");  // more at night
  const int kills = wanted == nullptr ? 4 : std::atoi(wanted);
  const ScratchFolder folder;
  const Arguments often{"--checkpoint-every", "3", "--keep-checkpoints", "2"};
  const auto begun = std::chrono::steady_clock::now();
  REQUIRE(run_process("mnist_multi_gpu", whole_training(folder / "whole", often)).code == 0);
  const std::chrono::duration<double> length = std::chrono::steady_clock::now() - begun;
  const std::string program =
      (fs::read_symlink("/proc/self/exe").parent_path() / "mnist_multi_gpu").string();
  std::mt19937 random(12);
  int killed = 0;
  for (int runs = 0; killed < kills; ++runs) {
    const std::string out = folder / ("run" + std::to_string(runs));
    for (bool finished = false; !finished;) {
      // Before there is a config.json nothing was begun.
      Arguments arguments = fs::exists(out + "/config.json") ? Arguments{"--resume", out, "--quiet"}
                                                             : whole_training(out, often);
      const double share = static_cast<double>(random() % 1000) / 1000;
      if (killed < kills) {
        const Arguments timeout{"--foreground", "--signal=KILL",
                                std::to_string(share * length.count()), program};
        arguments.insert(arguments.begin(), timeout.begin(), timeout.end());
      }
      const ProcessResult run =
          run_process(killed < kills ? "/usr/bin/timeout" : program, arguments);
      INFO(run.err << " after " << share << " of " << length.count() << " s");
      REQUIRE((run.code == 0 || run.code == 128 + SIGKILL));
      CHECK(run.err.empty());
      finished = run.code == 0;
      killed += finished ? 0 : 1;
    }
    check_same_run(out, folder / "whole");
  }
}

}  // namespace lockstep
