// The article's experiment, shortened, on real MNIST: four GPUs learn what four CPU replicas learn.
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "apps/process.h"
#include "apps/read_text.h"
#include "apps/training_run.h"
#include "parallel/cuda/gpus.h"
#include "support/catch.h"

namespace lockstep {

using test::json_lines;
using test::run_process;
using test::ScratchFolder;

namespace {

constexpr int kValidation = 1000;

/// Whether MNIST lies in `folder`; where LOCKSTEP_REQUIRE_MNIST is 1 it must.
bool have_mnist(const std::string& folder) {
  if (std::filesystem::exists(folder + "/train-images-idx3-ubyte") ||
      std::filesystem::exists(folder + "/train-images-idx3-ubyte.gz")) {
    return true;
  }
  const char* required = std::getenv("LOCKSTEP_REQUIRE_MNIST");
  const std::string text = "no MNIST in " + folder + "; scripts/fetch_mnist.sh fetches it";
  if (required != nullptr && std::string(required) == "1") FAIL(text);
  WARN("SKIPPED, " << text);
  return false;
}

struct Trained {
  double accuracy = 0;      ///< of the validation samples, as training saw it
  std::vector<bool> right;  ///< of the same samples, one by one
};

Trained train(const std::string& devices, const std::string& folder) {
  const std::string limit = std::to_string(kValidation);
  const auto run = run_process(
      "mnist_multi_gpu", {"train", "--devices", devices, "--data", LOCKSTEP_MNIST_DIR,
                          "--limit-train", "6400", "--limit-validation", limit, "--limit-test", "0",
                          "--epochs", "1", "--seed", "7", "--json", "--out", folder});
  INFO(run.err);
  REQUIRE(run.code == 0);
  Trained trained;
  trained.accuracy = json_lines(run.out).at(1)["val_accuracy"].get<double>();

  const std::string file = folder + "/predictions.csv";
  const auto eval = run_process(
      "mnist_multi_gpu", {"eval", "--weights", folder, "--split", "validation", "--limit", limit,
                          "--devices", "cpu", "--predictions", file, "--quiet"});
  INFO(eval.err);
  REQUIRE(eval.code == 0);
  std::istringstream lines(test::read_text(file));
  std::string line;
  std::getline(lines, line);
  CHECK(line == "sample,class,prediction");
  while (std::getline(lines, line)) {
    int sample = 0;
    int label = 0;
    int prediction = 0;
    REQUIRE(std::sscanf(line.c_str(), "%d,%d,%d", &sample, &label, &prediction) == 3);
    REQUIRE(sample == std::ssize(trained.right));
    trained.right.push_back(label == prediction);
  }
  REQUIRE(trained.right.size() == kValidation);
  return trained;
}

}  // namespace

TEST_CASE("train: GPUs and CPU replicas are right about the same MNIST digits but for five") {
  if (!have_mnist(LOCKSTEP_MNIST_DIR)) return;
  const ScratchFolder folder;
  const int replicas = test::possible({1, 2, 4}).back();
  const Trained gpu = train("cuda:0-" + std::to_string(replicas - 1), folder / "gpu");
  const Trained cpu = train("cpu:4", folder / "cpu");
  int differing = 0;
  for (std::size_t i = 0; i < cpu.right.size(); ++i) differing += gpu.right[i] != cpu.right[i];
  CHECK(differing <= 5);
  CHECK(std::abs(gpu.accuracy - cpu.accuracy) <= 5.0 / kValidation);
  CHECK(cpu.accuracy > 0.8);
}

}  // namespace lockstep
