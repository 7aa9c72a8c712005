// What people read, from fixed figures, and the small texts it is made of.
#include "apps/report.h"

#include <sstream>

#include "apps/golden.h"
#include "apps/json_events.h"
#include "apps/progress_bar.h"
#include "apps/text.h"
#include "support/catch.h"

namespace lockstep::apps {

namespace {

EpochStats epoch(int number) {
  EpochStats stats;
  stats.epoch = number;
  stats.learning_rate = 0.01;
  stats.train_loss = 0.23456789;
  stats.data_loss = 0.2;
  stats.train_loss_ema = 0.125;
  stats.train_accuracy = 0.9;
  stats.has_validation = true;
  stats.val_loss = 0.0789;
  stats.val_accuracy = 0.981234;
  stats.steps = 430;
  stats.samples = 55000;
  stats.train_seconds = 1.1;
  stats.eval_seconds = 0.13;
  stats.seconds = 1.23;
  return stats;
}

}  // namespace

TEST_CASE("report: a training from start to end", "[apps]") {
  std::ostringstream out;
  write_train_start(out, {.version = "0.1.0",
                          .devices = "2 CPU replicas (avx2)",
                          .device_names = {"cpu:0", "cpu:1"},
                          .precision = "fp32",
                          .dataset = "mnist from data/mnist",
                          .train = 55000,
                          .validation = 5000,
                          .test = 10000,
                          .model = "article",
                          .model_table = "name  layer\nfc    linear 784 -> 10\n",
                          .optimizer = "adam(lr 0.01)",
                          .schedule = "max(0.01 * 0.7^epoch, 1e-05)",
                          .batch = "128 = 2 x 64",
                          .steps_per_epoch = 430,
                          .reduce = "fast",
                          .seed = 7,
                          .run_folder = "runs/now"});
  write_epoch_start(out, 0, 0.01);
  write_epoch_end(out, epoch(0));
  EpochStats second = epoch(1);
  second.reg_loss = 0.03456789;
  second.has_validation = false;
  second.eval_seconds = 0;
  write_epoch_start(out, 1, 0.00001);
  write_epoch_end(out, second);
  write_train_end(
      out, {.epochs = 2,
            .best_epoch = 1,
            .restored_best = true,
            .test = EvalStats{.loss = 0.0612, .correct = 9812, .samples = 10000, .seconds = 0.2},
            .seconds = 3.21,
            .run_folder = "runs/now",
            .weights = "runs/now/weights.safetensors"});
  test::check_golden("train_report.txt", out.str());
}

TEST_CASE("report: other ends of a training", "[apps]") {
  std::ostringstream out;
  write_train_end(out, {.interrupted = true,
                        .epochs = 1,
                        .test = {},
                        .seconds = 1,
                        .run_folder = "a",
                        .weights = "a/w"});
  write_train_end(out, {.stopped_early = true,
                        .epochs = 5,
                        .best_epoch = 2,
                        .test = {},
                        .seconds = 1,
                        .run_folder = "a",
                        .weights = "a/w"});
  test::check_golden("train_ends.txt", out.str());
}

TEST_CASE("report: a run that goes on says from where, and whether that is bit-equal", "[apps]") {
  const auto start = [](const ResumeReport& resumed) {
    std::ostringstream out;
    TrainReport report{};
    report.resumed = resumed;
    write_train_start(out, report);
    const std::string text = out.str();
    return text.substr(text.find("resumed"));
  };
  CHECK(start({}) == "resumed: there is no checkpoint yet, training begins again\n");
  CHECK(start({.checkpoint = "c", .step = 7, .epoch = 1}) ==
        "resumed from: c, step 7 in epoch 1\nbit-equal to a run without the break\n");
  CHECK(start({.checkpoint = "c", .step = 7, .epoch = 1, .bit_differences = {"one", "two"}}) ==
        "resumed from: c, step 7 in epoch 1\nnot bit-equal to a run without the break: one; two\n");
}

TEST_CASE("report: an evaluation with its confusion matrix", "[apps]") {
  std::ostringstream out;
  write_eval(out, {.weights = "w.safetensors",
                   .dataset = "mnist",
                   .split = "test",
                   .devices = "1 CPU replica (avx2)",
                   .stats = {.loss = 0.123456789, .correct = 5, .samples = 8, .seconds = 0.5},
                   .confusion = {{3, 1, 0}, {2, 2, 0}, {0, 0, 0}}});
  test::check_golden("eval_report.txt", out.str());
}

TEST_CASE("report: a drawing of a digit", "[apps]") {
  CHECK(preview({0, 1, 0.5F, 0, 0, 0, 0.11F, 0, 2}, 3) == "  @@++\n\n..  @@\n");
}

TEST_CASE("report: how a batch is dealt", "[apps]") {
  CHECK(batch_text({.replicas = 2, .shards = 2, .batch_size = 128, .shard_samples = 64}) ==
        "128 = 2 x 64");
  CHECK(batch_text({.replicas = 3, .shards = 3, .batch_size = 100, .shard_samples = 34}) ==
        "100 = 34 + 34 + 32");
  CHECK(batch_text({.replicas = 4, .shards = 4, .batch_size = 2, .shard_samples = 1}) ==
        "2 = 1 + 1 + 0 + 0");
  CHECK(batch_text({.replicas = 2, .shards = 8, .batch_size = 128, .shard_samples = 16}) ==
        "128 = 2 x 64, in 8 shards of 16");
}

TEST_CASE("report: learning rates keep their digits", "[apps]") {
  CHECK(rate_text(0.01) == "0.0100");
  CHECK(rate_text(0.00343) == "0.0034");
  CHECK(rate_text(1e-5) == "1e-05");
  CHECK(rate_text(0.00024) == "0.00024");
}

TEST_CASE("report: nothing that a terminal would obey is shown", "[apps]") {
  CHECK(shown("data/K\xC3\xB6ln: no such file\n\"x\"~") ==
        "data/K\xC3\xB6ln: no such file\n\"x\"~");
  CHECK(shown("\x1b[31m\a\r\t\x7F") == "?[31m????");
  CHECK(shown("\xC2\x9B"
              "2J \xC2\xA0 \xC3\x9B \x9B") == "?2J \xC2\xA0 \xC3\x9B \x9B");
  CHECK(shown("\xC2\x80\xC2\x9F \xC2\x1b \xC2") == "?? \xC2? \xC2");
}

TEST_CASE("report: a progress line fits its width", "[apps]") {
  CHECK(progress_line("epoch 0", 215, 430, "loss 0.1", 80) ==
        "epoch 0 [===============               ] 50 %  loss 0.1");
  CHECK(progress_line("epoch 0", 430, 430, "", 80) ==
        "epoch 0 [==============================] 100 %");
  CHECK(progress_line("epoch 0", 215, 430, "loss 0.1", 20) == "epoch 0 [===========");
  CHECK(progress_line("x", 0, 0, "", 80) == "x [                              ] 0 %");
}

TEST_CASE("events: fields and one line each", "[apps]") {
  std::ostringstream out;
  write_event(out, epoch_event(epoch(3)));
  const Json event = Json::parse(out.str());
  CHECK(out.str().find('\n') == out.str().size() - 1);
  CHECK(event["event"] == "epoch");
  CHECK(event["schema"] == 1);
  CHECK(event["epoch"] == 3);
  CHECK(event["val_accuracy"] == 0.981234);
  for (const char* key : {"lr", "train_loss", "train_loss_ema", "val_loss", "train_seconds",
                          "eval_seconds", "seconds", "samples_per_second"}) {
    INFO(key);
    CHECK(event[key].is_number());
  }
  // Bytes that are no UTF-8, as a file name may have, do not break the line.
  std::ostringstream broken;
  write_event(broken, error_event("data", 3, "bad \xff name"));
  CHECK(Json::parse(broken.str())["exit_code"] == 3);
}

}  // namespace lockstep::apps
