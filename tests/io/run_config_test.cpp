// Reading a run's config.json: what is there, what is not, and what is refused by name.
#include "lockstep/io/run_config.h"

#include "lockstep/core/error.h"

#include "io/scratch.h"
#include "support/catch.h"
#include "support/throws.h"

namespace lockstep {
namespace {

using test::contains;
using test::put;
using test::Scratch;

const LegalTexts kWanted = {{"model", {"article", "mlp"}}, {"data", {}}};

/// The error for a configuration of this text, which names the file and says what to do.
std::string refusal(const std::string& text) {
  const Scratch scratch;
  put(scratch / "config.json", text);
  std::string error =
      test::message_of<IoError>([&] { (void)read_run_config(scratch / "config.json", kWanted); });
  INFO(error);
  CHECK(error.starts_with((scratch / "config.json").string() + ": "));
  return error;
}

TEST_CASE("a run's configuration: texts that are there, and nothing for those that are not") {
  const Scratch scratch;
  CHECK(read_run_config(scratch / "config.json", kWanted).empty());
  put(scratch / "config.json",
      R"({"model": "mlp", "data": "/d\u00e4ta", "devices": ["cpu:0"], "epochs": 2})");
  CHECK(read_run_config(scratch / "config.json", kWanted) ==
        std::map<std::string, std::string>{{"model", "mlp"}, {"data", "/d\xC3\xA4ta"}});
  put(scratch / "config.json", R"({"epochs": 2})");
  CHECK(read_run_config(scratch / "config.json", kWanted).empty());
}

TEST_CASE("a run's configuration inside a checkpoint's manifest") {
  const Scratch scratch;
  const auto config = [&](const std::string& text) {
    put(scratch / "manifest.json", text);
    return read_run_config(scratch / "manifest.json", kWanted, "config");
  };
  CHECK(config(R"({"model": "x", "config": {"model": "mlp"}})").at("model") == "mlp");
  CHECK(config(R"({"config": null})").empty());
  CHECK(config("{}").empty());
  CHECK(contains(test::message_of<IoError>([&] { (void)config(R"({"config": [1]})"); }),
                 "'config' is [1], expected an object"));
  CHECK(contains(test::message_of<IoError>([&] { (void)config(R"({"config": {"model": 1}})"); }),
                 "'model' is 1, expected a text"));
}

TEST_CASE("a run's configuration: a wrong type or value is an error that names the key") {
  for (const char* value : {"3", "null", "true", "[]", "{}", "[\"mlp\"]"}) {
    for (const char* key : {"model", "data"}) {
      const std::string error =
          refusal(std::string("{\"") + key + "\": " + value + ", \"epochs\": 1}");
      CHECK(contains(error, std::string("'") + key + "' is " + value + ", expected a text"));
      CHECK(contains(error, "mend it, or move the file away"));
    }
  }
  for (const char* value : {"", "Article", "mlp ", "\\u001b[31mred"}) {
    const std::string error = refusal(std::string(R"({"model": ")") + value + "\"}");
    CHECK(contains(error, "expected one of article, mlp"));
    CHECK_FALSE(contains(error, "\x1b"));
  }
}

TEST_CASE("a run's configuration: what is no configuration is refused") {
  CHECK(contains(refusal(""), "no JSON"));
  CHECK(contains(refusal("{"), "no JSON"));
  CHECK(contains(refusal("{\"\xff\": 1}"), "no JSON"));
  CHECK(contains(refusal("[]"), "no JSON object"));
  CHECK(contains(refusal("\"text\""), "no JSON object"));
  CHECK(contains(refusal(std::string(100000, '[')), "nested"));
  CHECK(contains(refusal(R"({"model": "mlp", "model": "article"})"), "'model' is twice"));
  CHECK(contains(refusal(R"({"x": {"a": 1, "a": 2}})"), "'a' is twice"));
  CHECK(refusal("{\"" + std::string(100000, 'x') + "\": }").size() < 1000);
  CHECK(contains(refusal(std::string((1 << 20) + 1, ' ')), "at most 1048576"));
  const Scratch scratch;
  CHECK(contains(test::message_of<IoError>([&] { (void)read_run_config(scratch.path(), kWanted); }),
                 "no regular file"));
  CHECK(read_run_config(scratch / "missing/config.json", kWanted).empty());
  put(scratch / "file", "");
  CHECK_THROWS_AS(read_run_config(scratch / "file/config.json", kWanted), IoError);
}

TEST_CASE("a run's options: out of its file and out of a text, under the same limits") {
  const Scratch scratch;
  const std::string text =
      R"({"options": {"--lr": "0.5", "--quiet": ""}, "batch_size": 64, "x": [1]})";
  put(scratch / "config.json", text);
  for (const RunOptions& read :
       {read_run_options(scratch / "config.json"), parse_run_options(text, "step-1")}) {
    CHECK(read.options == std::map<std::string, std::string>{{"--lr", "0.5"}, {"--quiet", ""}});
    CHECK(read.batch_size == 64);
  }
  const std::pair<std::string, std::string> bad[] = {
      {"", "no JSON"},
      {"[]", "no JSON object"},
      {"{}", "does not say the options of its run"},
      {R"({"options": ["--lr"], "batch_size": 1})", "does not say the options of its run"},
      {R"({"options": {"--lr": 0.5}, "batch_size": 1})", "the option '--lr' is 0.5"},
      {R"({"options": {"--\u001b[2J": null}, "batch_size": 1})", "the option '--?[2J' is null"},
      {R"({"options": {}})", "'batch_size' is missing"},
      {R"({"options": {}, "batch_size": 0})", "'batch_size' is 0"},
      {R"({"options": {}, "batch_size": -5})", "'batch_size' is -5"},
      {R"({"options": {}, "batch_size": 1.5})", "'batch_size' is 1.5"},
      {R"({"options": {}, "batch_size": 9223372036854775808})",
       "'batch_size' is 9223372036854775808"},
      {R"({"options": {"--lr": "1", "--lr": "2"}, "batch_size": 1})", "'--lr' is twice"},
      {std::string(100000, '['), "nested"},
      {R"({"options": {}, "batch_size": 1, "x": )" + std::string(20, '[') + std::string(20, ']') +
           "}",
       "nested"}};
  for (const auto& [hostile, reason] : bad) {
    const std::string error =
        test::message_of<IoError>([&] { (void)parse_run_options(hostile, "step-1"); });
    INFO(hostile << error);
    CHECK(error.starts_with("step-1: "));
    CHECK(contains(error, reason));
    put(scratch / "config.json", hostile);
    CHECK(contains(
        test::message_of<IoError>([&] { (void)read_run_options(scratch / "config.json"); }),
        reason));
  }
  put(scratch / "config.json", std::string((1 << 20) + 1, ' '));
  CHECK(
      contains(test::message_of<IoError>([&] { (void)read_run_options(scratch / "config.json"); }),
               "at most 1048576"));
  CHECK_THROWS_AS(read_run_options(scratch / "none"), IoError);
  CHECK_THROWS_AS(read_run_options(scratch.path()), IoError);
}

}  // namespace
}  // namespace lockstep
