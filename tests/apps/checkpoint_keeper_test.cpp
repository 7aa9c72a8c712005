// Saving checkpoints while training goes on, on a disk that is full for a time.
#include "apps/mnist_multi_gpu/checkpoint_keeper.h"

#include <cerrno>
#include <sstream>
#include <vector>

#include "lockstep/core/error.h"

#include "apps/mnist_multi_gpu/metrics_keeper.h"
#include "apps/process.h"
#include "apps/read_text.h"
#include "io/checkpoint_cases.h"
#include "io/file_limit.h"
#include "support/catch.h"
#include "support/system_faults.h"
#include "support/throws.h"

namespace lockstep::apps {

using test::contains;
using test::FileLimit;
using test::message_of;
using test::ScratchFolder;
using test::small_checkpoint;

TEST_CASE("a checkpoint that cannot be written is a warning, the first one an error", "[apps]") {
  const ScratchFolder folder;
  std::vector<std::string> warnings;
  const LogSink log = [&](LogLevel level, std::string_view text) {
    CHECK(level == LogLevel::warning);
    warnings.emplace_back(text);
  };
  CheckpointKeeper keeper(folder / "checkpoints", 2, 100, nullptr, Json{{"model", "mlp"}}, log);
  {
    const FileLimit full(200);
    CHECK_THROWS_AS(keeper.save(small_checkpoint(0)), IoError);
  }
  keeper.save(small_checkpoint(0));
  CHECK(warnings.empty());
  {
    const FileLimit full(200);
    keeper.save(small_checkpoint(5));
  }
  REQUIRE(warnings.size() == 1);
  CHECK(contains(warnings[0], "File too large"));
  CHECK(contains(warnings[0], "the newest is " + (folder / "checkpoints/step-00000000")));
  CHECK_FALSE(keeper.trouble().empty());
  keeper.save(small_checkpoint(10));
  CHECK(keeper.trouble().empty());
  const auto newest = newest_checkpoint(folder / "checkpoints");
  REQUIRE(newest);
  CHECK(newest->checkpoint.step.step == 10);
  CHECK(newest->checkpoint.config == R"({"model":"mlp"})");
}

TEST_CASE("figures that cannot be written wait, in order, and are written once", "[apps]") {
  const ScratchFolder folder;
  const RunFolder run = RunFolder::create(folder / "run");
  std::vector<std::string> warnings;
  MetricsKeeper metrics(run, 0, [&](LogLevel level, std::string_view text) {
    CHECK(level == LogLevel::warning);
    warnings.emplace_back(text);
  });
  const auto add = [&](int epoch) {
    EpochStats stats;
    stats.epoch = epoch;
    metrics.add(stats);
  };
  add(0);
  CHECK(metrics.written());
  {
    const FileLimit full(std::filesystem::file_size(run.file("metrics.csv")) + 10);
    add(1);
    add(2);
    CHECK_FALSE(metrics.written());
    CHECK(contains(metrics.trouble(), "File too large"));
  }
  REQUIRE(warnings.size() == 2);
  CHECK(contains(warnings[1], "the figures of 2 epochs wait: " + run.file("metrics.csv").string()));
  // The bytes cannot be brought to the disk: rows that were written already come once all the same.
  for (int at = 2; at < 4; ++at) {
    const test::SystemFault planted(at, test::Fault::refused, EIO);
    CHECK_FALSE(metrics.written());
    CHECK(test::SystemFault::happened());
  }
  add(3);
  CHECK(metrics.written());
  CHECK(metrics.trouble().empty());
  std::istringstream lines(test::read_text(run.file("metrics.jsonl")));
  int epochs = 0;
  for (std::string line; std::getline(lines, line); ++epochs) {
    CHECK(nlohmann::json::parse(line)["epoch"] == epochs);
  }
  CHECK(epochs == 4);
}

TEST_CASE("more checkpoints than the disk has room for are refused before training", "[apps]") {
  const ScratchFolder folder;
  CheckpointKeeper keeper(folder / "checkpoints", 2000000000, 2000000000, nullptr, Json::object(),
                          {});
  CHECK(contains(message_of<IoError>([&] { keeper.save(small_checkpoint(0)); }),
                 "keep fewer or make room"));
}

TEST_CASE("checkpoints that will never be written need no room", "[apps]") {
  const ScratchFolder folder;
  CheckpointKeeper keeper(folder / "checkpoints", 2000000000, 3, nullptr, Json::object(), {});
  keeper.save(small_checkpoint(0));
  CHECK_FALSE(keeper.folder().newest().empty());
}

}  // namespace lockstep::apps
