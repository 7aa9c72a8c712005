// predict: which digit a picture shows.
#include <algorithm>
#include <cmath>
#include <iostream>

#include "lockstep/core/error.h"

#include "apps/digit_image.h"
#include "apps/json_events.h"
#include "apps/mnist_multi_gpu/commands.h"
#include "apps/report.h"
#include "apps/setup.h"
#include "apps/text.h"

namespace lockstep::apps {

namespace {

std::vector<double> probabilities(const Tensor& logits) {
  std::vector<double> result(logits.values().begin(), logits.values().end());
  const double highest = *std::max_element(result.begin(), result.end());
  double sum = 0;
  for (double& value : result) sum += value = std::exp(value - highest);
  for (double& value : result) value /= sum;
  return result;
}

void write_prediction(const PredictOptions& options, const std::string& file,
                      const DigitImage& digit, const std::vector<double>& chances) {
  const auto best =
      static_cast<std::size_t>(std::max_element(chances.begin(), chances.end()) - chances.begin());
  if (options.output.json) {
    Json event = make_event("prediction");
    event["file"] = file;
    event["digit"] = best;
    event["probability"] = chances[best];
    event["probabilities"] = chances;
    event["inverted"] = digit.inverted;
    write_event(std::cout, event);
    return;
  }
  if (options.output.quiet) return;
  std::cout << file << ": " << best << " (" << fixed(100 * chances[best], 2) << "%)\n";
  if (digit.inverted) std::cout << "  light background: inverted\n";
  if (!options.no_preview) std::cout << preview(digit.pixels, kDigitSide);
  std::cout << std::flush;
}

}  // namespace

ExitCode run_predict(const PredictOptions& options) {
  const TrainedModel trained = load_trained(options.weights, options.model);
  for (const std::string& file : options.images) {
    const DigitImage digit = prepare_digit(read_image(file), file);
    const Tensor logits = trained.model.predict(Tensor(digit_shape().with_first(1), digit.pixels));
    if (!std::all_of(logits.values().begin(), logits.values().end(),
                     [](float logit) { return std::isfinite(logit); })) {
      throw NonFiniteError(message("predict: ", file, ": the model's output is not finite; ",
                                   trained.weights.string(),
                                   " hold values that are not, train again"));
    }
    write_prediction(options, file, digit, probabilities(logits));
  }
  return ExitCode::ok;
}

}  // namespace lockstep::apps
