// Checkpoints as folders: what comes back is what went in, and damage is found.
#include "lockstep/io/checkpoint.h"

#include <bit>
#include <cstdlib>

#include <nlohmann/json.hpp>

#include "lockstep/core/error.h"
#include "lockstep/core/sha256.h"

#include "io/checkpoint_cases.h"
#include "io/scratch.h"
#include "support/catch.h"
#include "support/throws.h"

namespace lockstep {
namespace {

using test::contains;
using test::message_of;
using test::names_in;
using test::put;
using test::read_text;
using test::Scratch;
using test::small_checkpoint;

using Names = std::vector<std::string>;

void check_same_tensors(const std::vector<NamedTensor>& a, const std::vector<NamedTensor>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    CHECK(a[i].name == b[i].name);
    CHECK(a[i].values.shape() == b[i].values.shape());
    const auto bits = [](const Tensor& tensor) {
      std::vector<std::uint32_t> all;
      for (const float value : tensor.values()) all.push_back(std::bit_cast<std::uint32_t>(value));
      return all;
    };
    CHECK(bits(a[i].values) == bits(b[i].values));
  }
}

/// Puts the lines of SHA256SUMS right again after a file was changed on purpose.
void sum_again(const std::filesystem::path& folder) {
  std::string sums;
  for (const std::string& name : names_in(folder)) {
    if (name == "SHA256SUMS") continue;
    const std::string text = read_text(folder / name);
    sums += sha256(std::as_bytes(std::span(text))) + "  " + name + "\n";
  }
  put(folder / "SHA256SUMS", sums);
}

TEST_CASE("a checkpoint comes back bit for bit") {
  const Scratch scratch;
  const Checkpoint saved = small_checkpoint(43);
  const std::string digest = save_checkpoint(saved, scratch / "c");
  CHECK(names_in(scratch.path()) == Names{"c"});
  CHECK(names_in(scratch / "c") == Names{"SHA256SUMS", "best.safetensors", "manifest.json",
                                         "optimizer.safetensors", "weights.safetensors"});
  const Checkpoint back = load_checkpoint(scratch / "c");
  CHECK(differences(back.recipe, saved.recipe).empty());
  CHECK(back.recipe.data == saved.recipe.data);
  CHECK(bit_differences(back.execution, saved.execution, false).empty());
  CHECK(back.step.step == 43);
  CHECK(back.step.epoch == 4);
  CHECK(back.step.step_in_epoch == 7);
  CHECK(back.position() == 7 * 64);
  CHECK(back.sums.loss == saved.sums.loss);
  CHECK(back.sums.correct == saved.sums.correct);
  CHECK(back.sums.ema == saved.sums.ema);
  CHECK(back.sums.ema_weight == saved.sums.ema_weight);
  CHECK(back.train_seconds == 1.5);
  CHECK(back.fit.first_epoch == 1);
  CHECK(back.fit.best_epoch == 4);
  CHECK(back.fit.best_loss == 0.25);
  CHECK(back.fit.since_best == 2);
  CHECK(back.config == saved.config);
  CHECK(back.parent.name == "step-00000001");
  CHECK(back.parent.sha256 == "def");
  check_same_tensors(back.weights, saved.weights);
  check_same_tensors(back.moments, saved.moments);
  check_same_tensors(back.best_weights, saved.best_weights);

  const std::string manifest = read_text(scratch / "c" / "manifest.json");
  CHECK(digest == sha256(std::as_bytes(std::span(manifest))));
  const auto json = nlohmann::json::parse(manifest);
  CHECK(json["schema"] == 1);
  CHECK(json["position"]["sample"] == 7 * 64);
  CHECK(json["random"]["generator"] == "philox4x32-10");
  CHECK(json["random"]["seed"] == 18446744073709551615U);
  CHECK(json["config"]["model"] == "article");
  // The tool that everybody has agrees.
  const std::string command =
      "cd '" + (scratch / "c").string() + "' && sha256sum --check --strict --quiet SHA256SUMS";
  CHECK(std::system(command.c_str()) == 0);
}

TEST_CASE("an optimizer without moments, no best weights and no config are no files") {
  const Scratch scratch;
  Checkpoint saved = small_checkpoint(1);
  saved.moments.clear();
  saved.best_weights.clear();
  saved.config.clear();
  save_checkpoint(saved, scratch / "c");
  CHECK(names_in(scratch / "c") == Names{"SHA256SUMS", "manifest.json", "weights.safetensors"});
  const Checkpoint back = load_checkpoint(scratch / "c");
  CHECK(back.moments.empty());
  CHECK(back.best_weights.empty());
  CHECK(back.config.empty());
  saved.config = "no JSON";
  CHECK_THROWS_AS(save_checkpoint(saved, scratch / "d"), UsageError);
  CHECK(names_in(scratch.path()) == Names{"c"});
}

TEST_CASE("a checkpoint never replaces what is there") {
  const Scratch scratch;
  save_checkpoint(small_checkpoint(1), scratch / "c");
  CHECK(contains(message_of<IoError>([&] { save_checkpoint(small_checkpoint(2), scratch / "c"); }),
                 "is there already"));
  CHECK(load_checkpoint(scratch / "c").step.step == 1);
  put(scratch / "file", "text");
  CHECK_THROWS_AS(save_checkpoint(small_checkpoint(2), scratch / "file"), IoError);
  CHECK(contains(
      message_of<IoError>([&] { save_checkpoint(small_checkpoint(2), scratch / "none" / "c"); }),
      "No such file or directory"));
  CHECK(names_in(scratch.path()) == Names{"c", "file"});
}

TEST_CASE("every byte that changes, every file that goes or is cut off is found and named") {
  const Scratch scratch;
  save_checkpoint(small_checkpoint(5), scratch / "c");
  for (const std::string& name : names_in(scratch / "c")) {
    INFO(name);
    const std::filesystem::path path = scratch / "c" / name;
    const std::string good = read_text(path);
    const auto refused = [&](const std::string& bytes) {
      put(path, bytes);
      const std::string text = message_of<IoError>([&] { (void)load_checkpoint(scratch / "c"); });
      return contains(text, (scratch / "c").string());
    };
    for (std::size_t at = 0; at < good.size(); at += 1 + good.size() / 97) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ 0x10);
      REQUIRE(refused(bad));
      REQUIRE(refused(good.substr(0, at)));
    }
    REQUIRE(refused(good + (name == "SHA256SUMS" ? "x" : "") + "\n"));
    std::filesystem::remove(path);
    CHECK(contains(message_of<IoError>([&] { (void)load_checkpoint(scratch / "c"); }),
                   path.string()));
    put(path, good);
    (void)load_checkpoint(scratch / "c");
  }
}

TEST_CASE("a manifest that is summed right but says nonsense is refused") {
  const Scratch scratch;
  save_checkpoint(small_checkpoint(5), scratch / "c");
  const std::filesystem::path path = scratch / "c" / "manifest.json";
  const auto good = nlohmann::json::parse(read_text(path));
  const auto refusal = [&](const std::string& text) {
    put(path, text);
    sum_again(scratch / "c");
    return message_of<IoError>([&] { (void)load_checkpoint(scratch / "c"); });
  };
  const auto changed = [&](const char* pointer, const nlohmann::json& value) {
    auto json = good;
    json[nlohmann::json::json_pointer(pointer)] = value;
    return refusal(json.dump());
  };
  CHECK(contains(refusal("no JSON"), "the manifest is no JSON"));
  CHECK(contains(refusal("[]"), "the manifest is no JSON object"));
  CHECK(contains(refusal(std::string(100000, '[')), "nested"));
  CHECK(contains(refusal("{}"), "'schema'"));
  CHECK(contains(changed("/schema", 2), "its schema is 2, this version reads 1"));
  CHECK(contains(changed("/position/epoch", -1), "'epoch' is -1, no such number"));
  CHECK(contains(changed("/position/epoch", 4294967296), "no such number"));
  CHECK(contains(changed("/position/step", 1.5), "no such number"));
  CHECK(contains(changed("/recipe/batch_size", "many"), "no such number"));
  CHECK(contains(changed("/epoch/loss", "much"), "'much' is no number"));
  CHECK(contains(changed("/recipe/seed", nullptr), "no such number"));
  CHECK(contains(changed("/execution/replicas", -3), "no such number"));
  CHECK(contains(changed("/parent", 7), "no manifest of a checkpoint"));
  for (const auto& item : good.items()) {
    auto json = good;
    json.erase(item.key());
    if (item.key() == "random") continue;  // tells people; nothing is read from it
    INFO(item.key());
    CHECK(contains(refusal(json.dump()), path.string()));
  }
}

}  // namespace
}  // namespace lockstep
