// Which GPUs `--devices` takes, and what the programs say about those that cannot be had.
#include <string>
#include <vector>

#include "apps/cuda/environment.h"
#include "apps/process.h"
#include "apps/training_run.h"
#include "parallel/cuda/gpus.h"
#include "support/catch.h"
#include "support/throws.h"

namespace lockstep {

using test::contains;
using test::EnvironmentVariable;
using test::json_lines;
using test::ProcessResult;
using test::run_process;
using test::ScratchFolder;

namespace {

/// A training of a moment on `devices`, in a folder of its own.
ProcessResult train_on(const std::string& devices) {
  const ScratchFolder folder;
  return run_process("mnist_multi_gpu",
                     {"--dataset", "synthetic", "--limit-train", "32", "--limit-validation", "0",
                      "--limit-test", "0", "--epochs", "1", "--batch-size", "32", "--model", "mlp",
                      "--devices", devices, "--json", "--out", folder / "run"});
}

}  // namespace

TEST_CASE("devices: all GPUs, some of them, and how they are named") {
  const std::string last = std::to_string(test::gpu_count() - 1);
  const auto some = train_on("cuda:" + last);
  REQUIRE(some.code == 0);
  const auto start = json_lines(some.out).at(0);
  REQUIRE(start["devices"].size() == 1);
  const auto name = start["devices"][0].get<std::string>();
  CHECK(name.starts_with("cuda:" + last + ": "));
  CHECK(contains(name, ", sm_"));
  CHECK(contains(name, "PCI "));
  CHECK(contains(name, "GPU-"));
  for (const char* every : {"cuda", "auto"}) {
    const auto all = train_on(every);
    REQUIRE(all.code == 0);
    CHECK(json_lines(all.out).at(0)["replicas"] == test::gpu_count());
    CHECK_FALSE(contains(all.err, "no GPU is used"));
  }
}

TEST_CASE("devices: a GPU that is not there, one named twice, and no index at all") {
  const auto missing = train_on("cuda:0,99");
  CHECK(missing.code == 4);
  CHECK(contains(missing.err, "there is no GPU 99; this machine has cuda:0"));
  const auto twice = train_on("cuda:0,0");
  CHECK(twice.code == 2);
  CHECK(contains(twice.err, "GPU 0 is named twice"));
  for (const char* wrong : {"cuda:", "cuda:x", "cuda:1-0", "cuda:-1"}) {
    INFO(wrong);
    const auto refused = train_on(wrong);
    CHECK(refused.code == 2);
    CHECK(contains(refused.err, "after 'cuda:' come indices like 0,2 or a range like 0-3"));
  }
}

TEST_CASE("devices: a machine whose GPUs are hidden") {
  const EnvironmentVariable hidden("CUDA_VISIBLE_DEVICES", "");
  const EnvironmentVariable none("CUSIM_DEVICES", "0");
  const auto refused = train_on("cuda");
  CHECK(refused.code == 4);
  CHECK(contains(refused.err, "the driver finds no NVIDIA GPU"));
  CHECK(contains(refused.err, "or use --devices cpu"));
  const auto automatic = train_on("auto");
  CHECK(automatic.code == 0);
  CHECK(contains(automatic.err, "no GPU is used: the driver finds no NVIDIA GPU"));
}

TEST_CASE("devices: no driver, and one that is too old") {
  if (!test::is_simulated()) return;  // a real driver stays what it is
  for (const auto& [driver, reason] :
       {std::pair{"0", "there is no NVIDIA driver on this machine"},
        {"12040", "the NVIDIA driver is too old: it serves CUDA 12.4"}}) {
    INFO("driver " << driver);
    const EnvironmentVariable version("CUSIM_DRIVER", driver);
    const auto refused = train_on("cuda:0");
    CHECK(refused.code == 4);
    CHECK(contains(refused.err, reason));
    const auto automatic = train_on("auto");
    CHECK(automatic.code == 0);
    CHECK(contains(automatic.err, std::string("no GPU is used: ") + reason));
  }
}

TEST_CASE("devices: a GPU that this build has no code for") {
  if (!test::is_simulated()) return;  // a real GPU is what the build was made for
  const EnvironmentVariable fault("CUSIM_FAULT", "cudaFuncGetAttributes@1=209");
  const auto refused = train_on("cuda:0");
  CHECK(refused.code == 4);
  CHECK(contains(refused.err, "this build has no code for Simulated device 0 (sm_90)"));
  CHECK(contains(refused.err, "CMAKE_CUDA_ARCHITECTURES=90"));
}

}  // namespace lockstep
