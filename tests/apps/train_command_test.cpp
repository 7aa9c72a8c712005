// `mnist_multi_gpu train` from end to end on drawn digits.
#include <fstream>
#include <regex>

#include "lockstep/io/weights.h"
#include "lockstep/layers/zoo.h"

#include "apps/golden.h"
#include "apps/process.h"
#include "apps/training_run.h"
#include "io/file_limit.h"
#include "support/catch.h"
#include "support/throws.h"

namespace lockstep {

using test::check_golden;
using test::contains;
using test::json_lines;
using test::read_text;
using test::run_process;
using test::ScratchFolder;
using test::small_training;

namespace fs = std::filesystem;

namespace {

/// What differs from machine to machine or from run to run becomes '#'.
std::string masked(std::string text, const std::string& folder) {
  for (std::size_t at; (at = text.find(folder)) != std::string::npos;) {
    text.replace(at, folder.size(), "FOLDER");
  }
  text = std::regex_replace(text, std::regex("lockstep [0-9.]+"), "lockstep #");
  text = std::regex_replace(text, std::regex("(avx2|avx512|baseline)"), "#");
  text = std::regex_replace(text, std::regex("[0-9]+(\\.[0-9]+)? sec\\."), "# sec.");
  text = std::regex_replace(text, std::regex("(train|validation) [0-9.]+(,|;)"), "$1 #$2");
  text = std::regex_replace(text, std::regex("[0-9]+ samples/s"), "# samples/s");
  text = std::regex_replace(text, std::regex("(loss:? ?|Accuracy: )[0-9.]+"), "$1#");
  return std::regex_replace(text, std::regex("[0-9]+ of 500"), "# of 500");
}

/// The csv without its last four columns, which are times.
std::string without_times(const std::string& csv) {
  return std::regex_replace(csv, std::regex("(,[^,\n]*){4}\n"), "\n");
}

}  // namespace

TEST_CASE("train: human output", "[apps]") {
  const ScratchFolder folder;
  const auto run = run_process("mnist_multi_gpu", small_training(folder / "run"));
  REQUIRE(run.code == 0);
  CHECK(run.err.empty());
  check_golden("train_output.txt", masked(run.out, folder.path().string()));
}

TEST_CASE("train: the run folder has everything, and is never overwritten", "[apps]") {
  const ScratchFolder folder;
  const auto run = run_process("mnist_multi_gpu", small_training(folder / "run", {"--quiet"}));
  CHECK(run.code == 0);
  CHECK(run.out.empty());
  CHECK(run.err.empty());
  Model model(zoo::article(), {1, 28, 28});
  load_weights(model, folder / "run/weights.safetensors");
  const std::string csv = read_text(folder / "run/metrics.csv");
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 3);  // the header and two epochs
  CHECK(csv.starts_with("epoch,lr,train_loss,"));
  CHECK(contains(csv, ",train_seconds,eval_seconds,seconds,samples_per_second\n"));
  CHECK(json_lines(read_text(folder / "run/metrics.jsonl")).size() == 2);
  const auto config = nlohmann::json::parse(read_text(folder / "run/config.json"));
  CHECK(config["model"] == "article");
  CHECK(config["dataset"] == "synthetic");
  CHECK(config["train_samples"] == 2000);
  CHECK(config["batch_size"] == 64);
  CHECK(config["replicas"] == 2);
  CHECK(config["seed"] == 0);
  CHECK(config["devices"] == nlohmann::json({"cpu:0", "cpu:1"}));

  const std::string before = read_text(folder / "run/weights.safetensors");
  const auto again =
      run_process("mnist_multi_gpu", small_training(folder / "run", {"--seed", "1"}));
  CHECK(again.code == 7);
  CHECK(contains(again.err, "error: "));
  CHECK(contains(again.err, "run"));
  CHECK(read_text(folder / "run/weights.safetensors") == before);
}

TEST_CASE("train: without --out every run has its folder and latest points at the last", "[apps]") {
  const ScratchFolder folder;
  std::vector<std::string> arguments = small_training("unused", {"--quiet", "--epochs", "1"});
  arguments.erase(std::find(arguments.begin(), arguments.end(), "--out"),
                  std::find(arguments.begin(), arguments.end(), "unused") + 1);
  for (int i = 0; i < 2; ++i) {
    CHECK(run_process("mnist_multi_gpu", arguments, {.folder = folder.path()}).code == 0);
  }
  CHECK(fs::is_symlink(folder / "runs/latest"));
  CHECK(fs::exists(folder / "runs/latest/weights.safetensors"));
  CHECK(std::distance(fs::directory_iterator(folder / "runs"), fs::directory_iterator()) == 3);
}

TEST_CASE("train: one seed gives the same bits, another seed others", "[apps]") {
  const ScratchFolder folder;
  for (const auto& [name, seed] : {std::pair{"a", "5"}, {"b", "5"}, {"c", "6"}}) {
    const auto run =
        run_process("mnist_multi_gpu", small_training(folder / name, {"--quiet", "--seed", seed}));
    CHECK(run.code == 0);
  }
  const auto weights = [&](const std::string& name) {
    return read_text(folder / (name + "/weights.safetensors"));
  };
  const auto metrics = [&](const std::string& name) {
    return without_times(read_text(folder / (name + "/metrics.csv")));
  };
  CHECK(weights("a") == weights("b"));
  CHECK(metrics("a") == metrics("b"));
  CHECK(weights("a") != weights("c"));
  CHECK(metrics("a") != metrics("c"));
}

TEST_CASE("train: --json prints events and nothing else", "[apps]") {
  const ScratchFolder folder;
  const auto run = run_process("mnist_multi_gpu", small_training(folder / "run", {"--json"}));
  REQUIRE(run.code == 0);
  CHECK(run.err.empty());
  const auto events = json_lines(run.out);
  REQUIRE(events.size() == 4);
  for (const auto& event : events) CHECK(event["schema"] == 1);
  CHECK(events[0]["event"] == "start");
  CHECK(events[0]["batch_size"] == 64);
  for (int epoch = 0; epoch < 2; ++epoch) {
    const auto& event = events[static_cast<std::size_t>(epoch) + 1];
    CHECK(event["event"] == "epoch");
    CHECK(event["epoch"] == epoch);
    for (const char* key : {"lr", "train_loss", "train_loss_ema", "val_loss", "val_accuracy",
                            "train_seconds", "eval_seconds", "seconds", "samples_per_second"}) {
      INFO(key);
      CHECK(event[key].is_number());
    }
    CHECK(event["val_accuracy"].get<double>() <= 1);
  }
  CHECK(events[2]["lr"].get<double>() == Approx(0.007));
  CHECK(events[2]["train_loss"].get<double>() < events[1]["train_loss"].get<double>());
  const auto& result = events[3];
  CHECK(result["event"] == "result");
  CHECK(result["test_accuracy"].get<double>() > 0.3);
  CHECK(result["run_dir"] == folder / "run");
  CHECK(fs::exists(result["weights"].get<std::string>()));
}

TEST_CASE("train: no validation and no test set", "[apps]") {
  const ScratchFolder folder;
  const auto run =
      run_process("mnist_multi_gpu",
                  {"--dataset", "synthetic", "--limit-train", "200", "--limit-validation", "0",
                   "--limit-test", "0", "--devices", "cpu:1", "--json", "--out", folder / "run"});
  REQUIRE(run.code == 0);
  const auto events = json_lines(run.out);
  CHECK(events[1]["val_accuracy"].is_null());
  CHECK(events.back()["test_accuracy"].is_null());
}

TEST_CASE("train: latest stays with the run before until there is something to go on from",
          "[apps]") {
  const ScratchFolder folder;
  const auto train = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = small_training("unused", {"--quiet", "--epochs", "1"});
    arguments.resize(arguments.size() - 5);
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_process("mnist_multi_gpu", arguments, {.folder = folder.path()}).code;
  };
  REQUIRE(train({}) == 0);
  const fs::path before = fs::read_symlink(folder / "runs/latest");
  {
    const test::FileLimit limit(20000);
    CHECK(train({}) == 7);
  }
  CHECK(fs::read_symlink(folder / "runs/latest") == before);
  CHECK(train({"--out", "elsewhere"}) == 0);
  CHECK(fs::read_symlink(folder / "runs/latest") == before);
  CHECK(train({}) == 0);
  CHECK(fs::read_symlink(folder / "runs/latest") != before);
}

TEST_CASE("train: --init-from and eval take a run, also one that was cut, and a checkpoint",
          "[apps]") {
  const ScratchFolder folder;
  REQUIRE(run_process("mnist_multi_gpu", small_training(folder / "a", {"--quiet"})).code == 0);
  fs::create_directory(folder / "cut");
  fs::copy(folder / "a/checkpoints", folder / "cut/checkpoints", fs::copy_options::recursive);
  fs::copy(folder / "a/config.json", folder / "cut/config.json");
  const auto second_epoch = json_lines(read_text(folder / "a/metrics.jsonl"))[1];
  int number = 0;
  for (const char* from : {"a", "cut", "a/checkpoints/step-00000064"}) {
    INFO(from);
    const auto run =
        run_process("mnist_multi_gpu", small_training(folder / std::to_string(number++),
                                                      {"--json", "--init-from", folder / from}));
    INFO(run.err);
    REQUIRE(run.code == 0);
    // Lower than where those weights came from.
    CHECK(json_lines(run.out)[1]["train_loss"].get<double>() <
          second_epoch["train_loss"].get<double>());
    const auto eval = run_process("mnist_multi_gpu", {"eval", "--weights", folder / from, "--split",
                                                      "validation", "--limit", "300", "--json"});
    INFO(eval.err);
    REQUIRE(eval.code == 0);
    CHECK(json_lines(eval.out).at(0)["loss"] == second_epoch["val_loss"]);
  }
  fs::create_directory(folder / "empty");
  const auto empty = run_process("mnist_multi_gpu",
                                 small_training(folder / "x", {"--init-from", folder / "empty"}));
  CHECK(empty.code == 7);
  CHECK(contains(empty.err, "no checkpoint; name a run folder or weights file with --init-from"));
  CHECK_FALSE(fs::exists(folder / "x"));
}

TEST_CASE("train: --init-from goes on from weights", "[apps]") {
  const ScratchFolder folder;
  CHECK(run_process("mnist_multi_gpu", small_training(folder / "a", {"--quiet"})).code == 0);
  const auto run = run_process(
      "mnist_multi_gpu",
      small_training(folder / "b", {"--json", "--init-from", folder / "a/weights.safetensors"}));
  REQUIRE(run.code == 0);
  const auto fresh = json_lines(read_text(folder / "a/metrics.jsonl"));
  CHECK(json_lines(run.out)[1]["train_loss"].get<double>() <
        fresh[0]["train_loss"].get<double>() / 1.5);
  const auto wrong = run_process("mnist_multi_gpu",
                                 small_training(folder / "c", {"--model", "mlp", "--init-from",
                                                               folder / "a/weights.safetensors"}));
  CHECK(wrong.code == 7);
  CHECK_FALSE(fs::exists(folder / "c"));
}

TEST_CASE("train: progress only on a terminal, erased before results, never when quiet", "[apps]") {
  const ScratchFolder folder;
  const auto run = run_process("mnist_multi_gpu", small_training(folder / "a"), {.terminal = true});
  REQUIRE(run.code == 0);
  CHECK(contains(run.err, "epoch 0 ["));
  CHECK(run.err.ends_with("\r\x1b[K"));
  CHECK(run.out.find('\x1b') == std::string::npos);
  for (const char* flag : {"--quiet", "--json"}) {
    const auto silent =
        run_process("mnist_multi_gpu", small_training(folder / flag, {flag}), {.terminal = true});
    CHECK(silent.code == 0);
    CHECK(silent.err.empty());
  }
}

}  // namespace lockstep
