// `mnist_multi_gpu eval`: the same figures as training printed.
#include <fstream>

#include "apps/process.h"
#include "apps/read_text.h"
#include "apps/training_run.h"
#include "support/catch.h"
#include "support/throws.h"

namespace lockstep {

using test::contains;
using test::json_lines;
using test::run_process;
using test::ScratchFolder;
using test::small_training;

TEST_CASE("eval: gives the figures of training, from the run folder alone", "[apps]") {
  const ScratchFolder folder;
  const auto trained =
      run_process("mnist_multi_gpu", small_training(folder / "run", {"--json", "--model", "mlp"}));
  REQUIRE(trained.code == 0);
  const auto events = json_lines(trained.out);
  for (const char* devices : {"cpu:1", "cpu:3"}) {
    const auto test = run_process(
        "mnist_multi_gpu",
        {"eval", "--weights", folder / "run", "--limit", "500", "--devices", devices, "--json"});
    REQUIRE(test.code == 0);
    const auto figures = json_lines(test.out).at(0);
    CHECK(figures["accuracy"] == events.back()["test_accuracy"]);
    CHECK(figures["loss"] == events.back()["test_loss"]);
    CHECK(figures["samples"] == 500);
    std::int64_t right = 0;
    std::int64_t all = 0;
    for (std::size_t c = 0; c < 10; ++c) {
      right += figures["confusion"][c][c].get<std::int64_t>();
      for (const auto& count : figures["confusion"][c]) all += count.get<std::int64_t>();
    }
    CHECK(right == figures["correct"]);
    CHECK(all == 500);
  }
  const auto validation = run_process(
      "mnist_multi_gpu",
      {"eval", "--weights", folder / "run", "--split", "validation", "--limit", "300", "--json"});
  CHECK(json_lines(validation.out).at(0)["accuracy"] == events[2]["val_accuracy"]);
}

TEST_CASE("eval: human output, and a weights file away from its run", "[apps]") {
  const ScratchFolder folder;
  CHECK(run_process("mnist_multi_gpu", small_training(folder / "run", {"--quiet"})).code == 0);
  std::filesystem::copy(folder / "run/weights.safetensors", folder / "w.safetensors");
  const auto run =
      run_process("mnist_multi_gpu", {"eval", "--weights", folder / "w.safetensors", "--dataset",
                                      "synthetic", "--split", "train", "--limit", "100"});
  CHECK(run.code == 0);
  CHECK(contains(run.out, "data: synthetic, train, 100 samples"));
  CHECK(contains(run.out, "Accuracy: "));
  CHECK(contains(run.out, "class  samples     right"));
  CHECK(run.err.empty());
}

TEST_CASE("eval: predictions replace predictions and nothing else", "[apps]") {
  const ScratchFolder folder;
  CHECK(run_process("mnist_multi_gpu", small_training(folder / "run", {"--quiet"})).code == 0);
  const auto eval_into = [&](const std::string& file) {
    return run_process("mnist_multi_gpu", {"eval", "--weights", folder / "run", "--limit", "10",
                                           "--quiet", "--predictions", file});
  };
  for (const char* name : {"run/weights.safetensors", "run/config.json", "run/metrics.csv"}) {
    CAPTURE(name);
    const std::string before = test::read_text(folder / name);
    const auto run = eval_into(folder / name);
    CHECK(run.code == 7);
    CHECK(contains(run.err, "something else than predictions"));
    CHECK(test::read_text(folder / name) == before);
  }
  CHECK(contains(eval_into(folder / "run").err, "is a folder"));
  CHECK(contains(eval_into(folder / "nowhere/p.csv").err, "there is no folder"));
  CHECK(contains(eval_into(folder / "nowhere/p.csv").err, "--predictions"));

  std::filesystem::create_symlink("p.csv", folder / "link");
  CHECK(eval_into(folder / "link").code == 0);
  const std::string predictions = test::read_text(folder / "p.csv");
  CHECK(predictions.starts_with("sample,class,prediction\n0,"));
  CHECK(std::filesystem::is_symlink(folder / "link"));
  CHECK(eval_into(folder / "p.csv").code == 0);
  CHECK(test::read_text(folder / "p.csv") == predictions);
  CHECK(eval_into("/dev/null").code == 0);
  CHECK(std::filesystem::is_character_file("/dev/null"));
  const auto full = eval_into("/dev/full");
  CHECK(full.code == 7);
  CHECK(contains(full.err, "cannot be written"));
  CHECK(std::filesystem::is_character_file("/dev/full"));
}

TEST_CASE("eval: missing weights are an error that says what to do", "[apps]") {
  const ScratchFolder folder;
  const auto run = run_process("mnist_multi_gpu", {"eval", "--weights", folder / "nothing"});
  CHECK(run.code == 7);
  CHECK(contains(run.err, "--weights"));
  CHECK(run.out.empty());
}

TEST_CASE("eval: a configuration that says nonsense is an error, not a default", "[apps]") {
  const ScratchFolder folder;
  CHECK(
      run_process("mnist_multi_gpu", small_training(folder / "run", {"--quiet", "--model", "mlp"}))
          .code == 0);
  const std::string path = folder / "run/config.json";
  const auto good = nlohmann::json::parse(test::read_text(path));
  const auto eval_with = [&](const nlohmann::json& config) {
    std::ofstream(path) << config.dump();
    return run_process("mnist_multi_gpu", {"eval", "--weights", folder / "run", "--limit", "10"});
  };
  CHECK(eval_with(good).code == 0);
  for (const auto& [key, value] : {std::pair<const char*, nlohmann::json>{"model", 3},
                                   {"model", "lenet"},
                                   {"dataset", nullptr},
                                   {"dataset", "mnist2"},
                                   {"data", {"a", "b"}}}) {
    auto config = good;
    config[key] = value;
    const auto run = eval_with(config);
    INFO(run.err);
    CHECK(run.code == 7);
    CHECK(contains(run.err, path + ": '" + key + "' is "));
    CHECK(contains(run.err, "expected "));
  }
}

}  // namespace lockstep
