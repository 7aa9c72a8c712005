// `mnist_multi_gpu --resume` on GPUs: a run that was cut twice is the run without the breaks, and a
// run may move from the CPU to GPUs and back.
#include <csignal>
#include <string>
#include <vector>

#include "apps/process.h"
#include "apps/read_text.h"
#include "apps/training_run.h"
#include "parallel/cuda/gpus.h"
#include "support/catch.h"
#include "support/throws.h"

namespace lockstep {

using test::json_lines;
using test::ProcessResult;
using test::read_text;
using test::run_process;
using test::ScratchFolder;

namespace {

using Arguments = std::vector<std::string>;

/// On two GPUs where there are two.
std::string gpus() {
  return "cuda:0-" + std::to_string(test::possible({1, 2}).back() - 1);
}

/// A training of the article's CNN on 200 drawn digits, 7 steps an epoch.
Arguments training(const std::string& out, const std::string& devices, const Arguments& more) {
  Arguments arguments{"--dataset",
                      "synthetic",
                      "--limit-train",
                      "200",
                      "--limit-validation",
                      "64",
                      "--limit-test",
                      "0",
                      "--batch-size",
                      "32",
                      "--json",
                      "--devices",
                      devices,
                      "--out",
                      out};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

/// Runs it, and sends `signal` once the first epoch of this process has ended.
ProcessResult cut(const Arguments& arguments, int signal) {
  bool sent = false;
  return run_process("mnist_multi_gpu", arguments,
                     {.on_output = [&](const std::string& text, int pid) {
                       if (sent || !test::contains(text, R"("event":"epoch")")) return;
                       sent = true;
                       kill(pid, signal);
                     }});
}

void finish(const Arguments& arguments) {
  const ProcessResult run = run_process("mnist_multi_gpu", arguments);
  INFO(run.err);
  REQUIRE(run.code == 0);
}

nlohmann::json start_of(const Arguments& arguments) {
  const ProcessResult run = run_process("mnist_multi_gpu", arguments);
  INFO(run.err);
  REQUIRE(run.code == 0);
  return json_lines(run.out).front();
}

}  // namespace

TEST_CASE("resume: interrupted, gone on with, killed and gone on with is the run without a break") {
  const ScratchFolder folder;
  const Arguments options{"--epochs", "20", "--checkpoint-every", "3"};
  finish(training(folder / "whole", gpus(), options));
  REQUIRE(cut(training(folder / "cut", gpus(), options), SIGTERM).code == 130);
  REQUIRE(cut({"--resume", folder / "cut", "--json"}, SIGKILL).code == 128 + SIGKILL);
  const auto start = start_of({"--resume", folder / "cut", "--json"});
  CHECK(start["bit_equal"] == true);
  CHECK(start["resumed_step"].get<int>() >= 12);  // which the process that was killed has written
  CHECK(read_text(folder / "cut/weights.safetensors") ==
        read_text(folder / "whole/weights.safetensors"));
  const auto rows = json_lines(read_text(folder / "cut/metrics.jsonl"));
  const auto expected = json_lines(read_text(folder / "whole/metrics.jsonl"));
  REQUIRE(rows.size() == expected.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (const char* key : {"epoch", "train_loss", "train_loss_ema", "val_loss", "val_accuracy"}) {
      CHECK(rows[i][key] == expected[i][key]);
    }
  }
}

TEST_CASE("resume: from the CPU to GPUs and back, close to the run that stayed") {
  const ScratchFolder folder;
  const Arguments options{"--optimizer", "sgd", "--lr", "0.05", "--epochs"};
  const auto epochs = [&](const char* count) {
    Arguments all = options;
    all.emplace_back(count);
    return all;
  };
  finish(training(folder / "stayed", "cpu:2", epochs("3")));
  finish(training(folder / "moved", "cpu:2", epochs("1")));
  const auto there =
      start_of({"--resume", folder / "moved", "--json", "--devices", gpus(), "--epochs", "2"});
  CHECK(there["bit_equal"] == false);
  CHECK(there["bit_differences"][0] == "cuda as backend instead of cpu");
  const auto back =
      start_of({"--resume", folder / "moved", "--json", "--devices", "cpu:2", "--epochs", "3"});
  CHECK(back["bit_differences"][0] == "cpu as backend instead of cuda");
  CHECK(test::relative_difference(test::article_arena(folder / "moved"),
                                  test::article_arena(folder / "stayed")) <= 1e-4);
  CHECK(json_lines(read_text(folder / "moved/metrics.jsonl")).size() == 3);
}

}  // namespace lockstep
