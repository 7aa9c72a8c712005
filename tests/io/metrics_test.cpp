// Rows of metrics.csv and metrics.jsonl, by hand.
#include "lockstep/io/metrics.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

#include <nlohmann/json.hpp>

#include "lockstep/core/error.h"

#include "io/file_limit.h"
#include "io/scratch.h"
#include "support/catch.h"
#include "support/throws.h"

namespace lockstep {
namespace {

using test::read_text;
using test::Scratch;

constexpr const char* kHeader =
    "epoch,lr,train_loss,data_loss,reg_loss,train_loss_ema,train_accuracy,val_loss,val_accuracy,"
    "steps,skipped_steps,samples,train_seconds,eval_seconds,seconds,samples_per_second\n";

EpochStats first_epoch() {
  EpochStats epoch;
  epoch.epoch = 0;
  epoch.learning_rate = 0.01;
  epoch.train_loss = 0.75;
  epoch.data_loss = 0.5;
  epoch.reg_loss = 0.25;
  epoch.train_loss_ema = 0.125;
  epoch.train_accuracy = 0.9;
  epoch.has_validation = true;
  epoch.val_loss = 0.1;
  epoch.val_accuracy = 0.975;
  epoch.steps = 430;
  epoch.samples = 55000;
  epoch.train_seconds = 2.0;
  epoch.eval_seconds = 0.5;
  epoch.seconds = 2.5;
  return epoch;
}

EpochStats second_epoch() {
  EpochStats epoch = first_epoch();
  epoch.epoch = 1;
  epoch.learning_rate = 0.007;
  epoch.has_validation = false;
  return epoch;
}

TEST_CASE("every epoch is a row in both files at once") {
  const Scratch scratch;
  const RunFolder run = RunFolder::create(scratch / "run");
  MetricsWriter writer(run);
  CHECK(read_text(run.file("metrics.csv")) == kHeader);
  CHECK(read_text(run.file("metrics.jsonl")).empty());

  const std::string row0 = "0,0.01,0.75,0.5,0.25,0.125,0.9,0.1,0.975,430,0,55000,2,0.5,2.5,27500\n";
  const std::string row1 = "1,0.007,0.75,0.5,0.25,0.125,0.9,,,430,0,55000,2,0.5,2.5,27500\n";
  writer.add(first_epoch());
  CHECK(read_text(run.file("metrics.csv")) == kHeader + row0);
  CHECK(read_text(run.file("metrics.jsonl")) == epoch_json(first_epoch()) + "\n");
  writer.add(second_epoch());
  CHECK(read_text(run.file("metrics.csv")) == kHeader + row0 + row1);
  CHECK(read_text(run.file("metrics.jsonl")) ==
        epoch_json(first_epoch()) + "\n" + epoch_json(second_epoch()) + "\n");
}

TEST_CASE("a second writer goes on behind the rows of the first") {
  const Scratch scratch;
  const RunFolder run = RunFolder::create(scratch / "run");
  MetricsWriter(run).add(first_epoch());
  MetricsWriter(run).add(second_epoch());
  const std::string csv = read_text(run.file("metrics.csv"));
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 3);
  CHECK(csv.rfind(kHeader) == 0);
}

TEST_CASE("an epoch as JSON has the columns of the table in their order") {
  CHECK(
      epoch_json(first_epoch()) ==
      R"({"event":"epoch","epoch":0,"lr":0.01,"train_loss":0.75,"data_loss":0.5,"reg_loss":0.25,)"
      R"("train_loss_ema":0.125,"train_accuracy":0.9,"val_loss":0.1,"val_accuracy":0.975,)"
      R"("steps":430,"skipped_steps":0,"samples":55000,"train_seconds":2.0,"eval_seconds":0.5,"seconds":2.5,)"
      R"("samples_per_second":27500.0})");
  std::string keys;
  const auto json = nlohmann::ordered_json::parse(epoch_json(first_epoch()));
  for (const auto& item : json.items()) {
    if (item.key() != "event") keys += (keys.empty() ? "" : ",") + item.key();
  }
  CHECK(keys + "\n" == kHeader);
}

TEST_CASE("what is no number is null in JSON, and so is validation that was not done") {
  EpochStats epoch = second_epoch();
  epoch.train_loss = std::numeric_limits<double>::quiet_NaN();
  epoch.data_loss = std::numeric_limits<double>::infinity();
  const auto json = nlohmann::json::parse(epoch_json(epoch));
  CHECK(json["train_loss"].is_null());
  CHECK(json["data_loss"].is_null());
  CHECK(json["val_loss"].is_null());
  CHECK(json["val_accuracy"].is_null());
  CHECK(json["reg_loss"] == 0.25);
}

TEST_CASE("numbers read back to the same bits from both files") {
  const Scratch scratch;
  const RunFolder run = RunFolder::create(scratch / "run");
  MetricsWriter writer(run);
  for (const double value : {0.1 + 0.2, 1.0 / 3, 1e-300, 5e-324, 1.7976931348623157e308, 2.5e-5}) {
    EpochStats epoch = first_epoch();
    epoch.learning_rate = value;
    writer.add(epoch);
    CHECK(nlohmann::json::parse(epoch_json(epoch))["lr"].get<double>() == value);
    const std::string csv = read_text(run.file("metrics.csv"));
    const std::size_t row = csv.rfind('\n', csv.size() - 2) + 1;
    CHECK(std::strtod(csv.c_str() + csv.find(',', row) + 1, nullptr) == value);
  }
}

TEST_CASE("a full disk is an error that names file and reason and leaves whole rows") {
  const Scratch scratch;
  const RunFolder run = RunFolder::create(scratch / "run");
  MetricsWriter writer(run);
  writer.add(first_epoch());
  const std::string before = read_text(run.file("metrics.csv"));
  const std::string error = test::message_of<IoError>([&] {
    const test::FileLimit limit(before.size() + 10);
    writer.add(second_epoch());
  });
  CHECK(test::contains(error, run.file("metrics.csv").string()));
  CHECK(test::contains(error, "File too large"));
  CHECK(read_text(run.file("metrics.csv")) == before);

  // /dev/full is a disk that is full from the first byte on.
  REQUIRE(std::filesystem::exists("/dev/full"));
  const RunFolder full = RunFolder::create(scratch / "full");
  std::filesystem::create_symlink("/dev/full", full.file("metrics.jsonl"));
  MetricsWriter second(full);
  CHECK(test::contains(test::message_of<IoError>([&] { second.add(first_epoch()); }),
                       "metrics.jsonl: cannot write: No space left on device"));
}

TEST_CASE("a folder that is gone is an error") {
  const Scratch scratch;
  const RunFolder run = RunFolder::create(scratch / "run");
  std::filesystem::remove(run.path());
  CHECK(test::contains(test::message_of<IoError>([&] { MetricsWriter{run}; }), "metrics.csv"));
}

TEST_CASE("a run that goes on has every row once, whatever the files were left like") {
  const Scratch scratch;
  const RunFolder run = RunFolder::create(scratch / "run");
  {
    MetricsWriter writer(run);
    writer.add(first_epoch());
    writer.add(second_epoch());
  }
  const std::string csv = read_text(run.file("metrics.csv"));
  const std::string jsonl = read_text(run.file("metrics.jsonl"));
  const auto check_goes_on = [&] {
    MetricsWriter(run, 1).add(second_epoch());
    CHECK(read_text(run.file("metrics.csv")) == csv);
    CHECK(read_text(run.file("metrics.jsonl")) == jsonl);
  };
  check_goes_on();
  // Ended in the middle of a row, in either file.
  for (const std::size_t cut : {1, 7, 30}) {
    test::put(run.file("metrics.csv"), csv.substr(0, csv.size() - cut));
    check_goes_on();
    test::put(run.file("metrics.jsonl"), jsonl.substr(0, jsonl.size() - cut));
    check_goes_on();
  }
  test::put(run.file("metrics.csv"), csv + "3,0.5");
  test::put(run.file("metrics.jsonl"), jsonl + R"({"event":"epoch","epoch":2)");
  check_goes_on();
  // From the begin on, from before there were files, and with nothing to take out.
  { const MetricsWriter writer(run, 0); }
  CHECK(read_text(run.file("metrics.csv")) == kHeader);
  CHECK(read_text(run.file("metrics.jsonl")).empty());
  std::filesystem::remove(run.file("metrics.csv"));
  std::filesystem::remove(run.file("metrics.jsonl"));
  MetricsWriter(run, 0).add(first_epoch());
  check_goes_on();
  { const MetricsWriter writer(run, 2); }
  CHECK(read_text(run.file("metrics.csv")) == csv);
  CHECK(test::names_in(run.path()) == std::vector<std::string>{"metrics.csv", "metrics.jsonl"});
}

TEST_CASE("metrics that somebody else has written in are kept aside when a run goes on") {
  const std::string notes = "a note; with no commas\n";
  for (const char* name : {"metrics.csv", "metrics.jsonl"}) {
    const Scratch scratch;
    const RunFolder run = RunFolder::create(scratch / "run");
    MetricsWriter(run).add(first_epoch());
    const std::string text = read_text(run.file(name));
    const std::string aside = std::string("aside-") + name;
    const std::string edited = text + notes;
    for (const char* copy : {"", "again-2-", "again-3-"}) {
      test::put(run.file(name), edited);
      { const MetricsWriter writer(run, 1); }
      CHECK(read_text(run.file(name)) == text);
      CHECK(read_text(run.file(copy + aside)) == edited);
    }
    { const MetricsWriter writer(run, 1); }
    CHECK(test::names_in(run.path()).size() == 5);
  }
}

}  // namespace
}  // namespace lockstep
