// Signals while training: the weights are saved and the exit code says so.
#include <csignal>

#include "lockstep/io/weights.h"
#include "lockstep/layers/zoo.h"

#include "apps/process.h"
#include "apps/training_run.h"
#include "support/catch.h"
#include "support/throws.h"

namespace lockstep {

using test::contains;
using test::json_lines;
using test::ProcessResult;
using test::run_process;
using test::ScratchFolder;
using test::small_training;

namespace {

/// Trains for far longer than a test may take, sending `signals` once `sign` was printed.
ProcessResult interrupted(const std::string& out, const std::vector<std::string>& more,
                          const std::string& sign, const std::vector<int>& signals,
                          int ignored = 0) {
  bool sent = false;
  std::vector<std::string> arguments{"--epochs", "100000"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_process("mnist_multi_gpu", small_training(out, arguments),
                     {.ignored = ignored, .on_output = [&](const std::string& text, int pid) {
                        if (sent || !contains(text, sign)) return;
                        sent = true;
                        for (const int signal : signals) kill(pid, signal);
                      }});
}

}  // namespace

TEST_CASE("interrupt: the first signal saves the weights and ends with 130", "[apps]") {
  const ScratchFolder folder;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const std::string out = folder / std::to_string(signal);
    const ProcessResult run = interrupted(out, {}, "Epoch:1,", {signal});
    CHECK(run.code == 130);
    CHECK(contains(run.out, "training interrupted after "));
    CHECK(contains(run.out, "Cost time"));
    CHECK_FALSE(contains(run.out, "Test Accuracy"));
    Model model(zoo::article(), {1, 28, 28});
    load_weights(model, out + "/weights.safetensors");
  }
}

TEST_CASE("interrupt: the JSON says it too", "[apps]") {
  const ScratchFolder folder;
  const ProcessResult run = interrupted(folder / "run", {"--json"}, "\"epoch\":1", {SIGINT});
  CHECK(run.code == 130);
  const auto last = json_lines(run.out).back();
  CHECK(last["event"] == "interrupted");
  CHECK(std::filesystem::exists(last["weights"].get<std::string>()));
}

TEST_CASE("interrupt: a second signal ends at once", "[apps]") {
  const ScratchFolder folder;
  // Stopped meanwhile, so that it cannot end by the first before the second is there.
  const ProcessResult run =
      interrupted(folder / "run", {}, "Epoch:1,", {SIGSTOP, SIGINT, SIGTERM, SIGCONT});
  INFO(run.out << run.err);
  CHECK((run.code == 128 + SIGTERM || run.code == 128 + SIGINT));
  CHECK_FALSE(contains(run.out, "training interrupted"));
  CHECK_FALSE(std::filesystem::exists(folder / "run/weights.safetensors"));
}

TEST_CASE("interrupt: a signal that was ignored, as under nohup, stays ignored", "[apps]") {
  const ScratchFolder folder;
  const ProcessResult run =
      interrupted(folder / "run", {}, "Epoch:1,", {SIGSTOP, SIGHUP, SIGTERM, SIGCONT}, SIGHUP);
  CHECK(run.code == 130);  // SIGTERM was the first to count
  CHECK(std::filesystem::exists(folder / "run/weights.safetensors"));
}

}  // namespace lockstep
