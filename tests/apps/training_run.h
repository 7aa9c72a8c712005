// Small trainings through the real program, shared by the tests of the commands.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "lockstep/io/weights.h"
#include "lockstep/layers/zoo.h"

#include "apps/process.h"

namespace lockstep::test {

/// Arguments of a training on drawn digits that takes a moment, into the folder `out`.
inline std::vector<std::string> small_training(const std::string& out,
                                               const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments{
      "train", "--dataset",    "synthetic", "--limit-train", "2000",  "--limit-validation",
      "300",   "--limit-test", "500",       "--devices",     "cpu:2", "--batch-size",
      "64",    "--out",        out};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

/// The weights of the article's net that the run in `run` has trained.
inline std::vector<float> article_arena(const std::string& run) {
  Model model(zoo::article(), {1, 28, 28});
  load_weights(model, run + "/weights.safetensors");
  return model.arena();
}

/// Every line of `text` as JSON; throws for a line that is none.
inline std::vector<nlohmann::json> json_lines(const std::string& text) {
  std::vector<nlohmann::json> events;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) events.push_back(nlohmann::json::parse(line));
  return events;
}

}  // namespace lockstep::test
