// `mnist_multi_gpu replay`: what a run has computed comes out again, or the difference is named.
#include <filesystem>

#include "lockstep/io/checkpoint.h"

#include "apps/process.h"
#include "apps/training_run.h"
#include "io/scratch.h"
#include "support/catch.h"
#include "support/throws.h"

namespace lockstep {

using test::contains;
using test::json_lines;
using test::ProcessResult;
using test::run_process;
using test::ScratchFolder;
using test::small_training;

namespace fs = std::filesystem;

namespace {

/// A run with checkpoints after steps 50, 60 and 64.
std::string trained(const ScratchFolder& folder) {
  const std::string run = folder / "run";
  REQUIRE(run_process("mnist_multi_gpu",
                      small_training(run, {"--epochs", "2", "--checkpoint-every", "10", "--quiet"}))
              .code == 0);
  REQUIRE(fs::exists(run + "/checkpoints/step-00000060"));
  REQUIRE(fs::exists(run + "/checkpoints/step-00000064"));
  return run;
}

nlohmann::json replayed(const std::string& run, std::vector<std::string> more, int code) {
  more.insert(more.begin(), {"replay", run, "--json"});
  const ProcessResult result = run_process("mnist_multi_gpu", more);
  INFO(result.err);
  REQUIRE(result.code == code);
  return json_lines(result.out).back();
}

}  // namespace

TEST_CASE("replay: a stretch between two checkpoints comes out bit for bit", "[apps]") {
  const ScratchFolder folder;
  const std::string run = trained(folder);
  const nlohmann::json last = replayed(run, {}, 0);
  CHECK(last["from"] == "step-00000060");
  CHECK(last["steps"] == 4);
  CHECK(last["compared_with"] == "checkpoint");
  CHECK(last["bit_equal"] == true);
  CHECK(last["may_differ"].empty());
  const nlohmann::json longer = replayed(run, {"--from", "step-00000050", "--steps", "14"}, 0);
  CHECK(longer["compared_with"] == "checkpoint");
  const nlohmann::json twice = replayed(run, {"--steps", "3"}, 0);
  CHECK(twice["compared_with"] == "second_run");
  CHECK(twice["bit_equal"] == true);
  const nlohmann::json other = replayed(run, {"--from", "step-00000064", "--steps", "2"}, 0);
  CHECK(other["compared_with"] == "second_run");
}

TEST_CASE("replay: the first tensor that differs is named, and by how much", "[apps]") {
  const ScratchFolder folder;
  const std::string run = trained(folder);
  const fs::path newest = run + "/checkpoints/step-00000064";
  const Checkpoint right = load_checkpoint(newest);
  const auto differs = [&](Checkpoint wrong) {
    fs::remove_all(newest);
    save_checkpoint(wrong, newest);
    const nlohmann::json event = replayed(run, {}, 1);
    CHECK(event["bit_equal"] == false);
    return event["first_difference"];
  };
  Checkpoint wrong = right;
  for (NamedTensor& tensor : wrong.weights) {
    if (tensor.name == "conv_2.weight") tensor.values.data()[7] = 0;
    if (tensor.name != "fc.weight") continue;
    float& value = tensor.values.data()[11];
    value = std::nextafter(std::nextafter(value, 1.0F), 1.0F);
  }
  CHECK(differs(wrong)["tensor"] == "conv_2.weight");
  wrong = right;
  for (NamedTensor& tensor : wrong.moments) {
    if (tensor.name != "fc.bias.exp_avg_sq") continue;
    float& value = tensor.values.data()[3];
    value = std::nextafter(std::nextafter(value, 1.0F), 1.0F);
  }
  const nlohmann::json moment = differs(wrong);
  CHECK(moment["tensor"] == "fc.bias.exp_avg_sq");
  CHECK(moment["index"] == 3);
  CHECK(moment["elements"] == 1);
  CHECK(moment["ulps"] == 2);
}

TEST_CASE("replay: what cannot be trained again is refused", "[apps]") {
  const ScratchFolder folder;
  const std::string run = trained(folder);
  const auto refused = [&](const std::vector<std::string>& arguments, int code) {
    const ProcessResult result = run_process("mnist_multi_gpu", arguments);
    CHECK(result.code == code);
    return result.err;
  };
  CHECK(contains(refused({"replay", folder / "nothing"}, 7), "there is no such run folder"));
  CHECK(contains(refused({"replay", run, "--from", "step-1"}, 2), "step-00000060"));
  CHECK(contains(refused({"replay", run, "--from", "step-00000064"}, 2), "--steps"));
  fs::remove_all(run + "/checkpoints");
  CHECK(contains(refused({"replay", run}, 7), "no checkpoints"));
}

}  // namespace lockstep
