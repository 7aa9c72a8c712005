// `mnist_multi_gpu train` and `eval` on GPUs: what must not change a bit, and what may change
// little.
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
using test::read_text;
using test::run_process;
using test::ScratchFolder;

namespace {

/// Trains the article's CNN on 300 drawn digits, on two GPUs where there are two; the weights lie
/// in `out`.
void train(const std::string& out, const std::vector<std::string>& more = {}) {
  const int gpus = test::possible({1, 2}).back();
  std::vector<std::string> arguments{"--dataset",
                                     "synthetic",
                                     "--limit-train",
                                     "300",
                                     "--limit-validation",
                                     "100",
                                     "--limit-test",
                                     "0",
                                     "--epochs",
                                     "1",
                                     "--batch-size",
                                     "32",
                                     "--quiet",
                                     "--devices",
                                     "cuda:0-" + std::to_string(gpus - 1),
                                     "--out",
                                     out};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const auto run = run_process("mnist_multi_gpu", arguments);
  INFO(run.err);
  REQUIRE(run.code == 0);
}

std::string weights(const std::string& run) {
  return read_text(run + "/weights.safetensors");
}

}  // namespace

TEST_CASE("train: sending the samples gives the bits of samples that lie on the GPU") {
  const ScratchFolder folder;
  train(folder / "on", {"--data-resident", "on"});
  train(folder / "off", {"--data-resident", "off"});
  train(folder / "seed", {"--data-resident", "off", "--seed", "1"});
  CHECK(weights(folder / "on") == weights(folder / "off"));
  CHECK(weights(folder / "on") != weights(folder / "seed"));
}

TEST_CASE("train: a step given piece by piece has the bits of a recorded one; unfused is close") {
  const ScratchFolder folder;
  train(folder / "recorded");
  train(folder / "pieces", {"--no-graph"});
  train(folder / "unfused", {"--no-fuse"});
  CHECK(weights(folder / "recorded") == weights(folder / "pieces"));
  CHECK(weights(folder / "recorded") != weights(folder / "unfused"));  // or nothing was fused
  CHECK(test::relative_difference(test::article_arena(folder / "unfused"),
                                  test::article_arena(folder / "recorded")) <= 1e-3);
}

TEST_CASE("eval: a GPU gives the figures of the CPU, from weights that a GPU trained") {
  const ScratchFolder folder;
  train(folder / "run");
  const auto figures = [&](const std::string& devices) {
    const auto run = run_process(
        "mnist_multi_gpu", {"eval", "--weights", folder / "run", "--split", "validation", "--limit",
                            "300", "--devices", devices, "--json"});
    INFO(run.err);
    REQUIRE(run.code == 0);
    return json_lines(run.out).at(0);
  };
  const auto cpu = figures("cpu:1");
  const auto gpu = figures("cuda:0");
  CHECK(gpu["samples"] == 300);
  CHECK(gpu["loss"].get<double>() == Approx(cpu["loss"].get<double>()).epsilon(1e-4));
  CHECK(std::abs(gpu["correct"].get<int>() - cpu["correct"].get<int>()) <= 1);
  const auto all = figures("cuda");
  CHECK(all["loss"] == gpu["loss"]);
  CHECK(all["correct"] == gpu["correct"]);
}

}  // namespace lockstep
