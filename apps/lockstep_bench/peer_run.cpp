// lockstep_bench peer: the one training that peers measures of this library.
#include <chrono>
#include <cstdint>
#include <fstream>
#include <iostream>

#include "lockstep/config.h"
#include "lockstep/core/error.h"
#include "lockstep/layers/zoo.h"
#include "lockstep/parallel/trainer.h"

#include "apps/lockstep_bench/child_process.h"
#include "apps/lockstep_bench/peers.h"
#include "apps/setup.h"

namespace lockstep::apps {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Samples as bytes one after another, then a byte with the class of each.
Dataset read_samples(const std::string& path, std::int64_t count) {
  std::ifstream file(path, std::ios::binary);
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(count * digit_shape().count()));
  std::vector<std::uint8_t> labels(static_cast<std::size_t>(count));
  for (std::vector<std::uint8_t>* part : {&pixels, &labels}) {
    file.read(reinterpret_cast<char*>(part->data()), static_cast<std::streamsize>(part->size()));
  }
  if (!file) {
    throw DataError(message(path, ": not ", count,
                            " samples of 28x28 bytes and their classes; "
                            "'lockstep_bench peers' makes such files"));
  }
  constexpr int kClasses = 10;
  return Dataset::from_bytes("peers", digit_shape(), std::move(pixels),
                             std::vector<std::int32_t>(labels.begin(), labels.end()), kClasses);
}

}  // namespace

ExitCode run_peer(const PeerOptions& options) {
  const Clock::time_point started =
      options.started > 0 ? Clock::time_point(std::chrono::nanoseconds(options.started))
                          : Clock::now();
  World world({.devices = replicas_of("cpu", options.cores), .log = {}});
  const double lr = options.model == "wide_cnn" ? 0.001 : 0.01;
  Trainer trainer(world, zoo::by_name(options.model), SoftmaxCrossEntropy{}, Adam{.lr = lr});
  trainer.begin(read_samples(options.file, options.samples), {.batch_size = kPeersBatch});
  Json result;
  result["version"] = kVersion;
  result["parameters"] = trainer.model().layout().parameter_count();
  std::vector<double> seconds;
  double loss = 0;
  for (int epoch = 0; epoch < options.warm_up + options.epochs; ++epoch) {
    const Clock::time_point start = Clock::now();
    if (epoch == 0) {
      trainer.run_steps(1);
      result["first_step_seconds"] = seconds_since(started);
    }
    loss = trainer.run_epoch().train_loss;
    if (epoch >= options.warm_up) seconds.push_back(seconds_since(start));
  }
  result["epoch_seconds"] = seconds;
  result["peak_rss_bytes"] = peak_memory();
  result["loss"] = loss;
  write_event(std::cout, result);
  return ExitCode::ok;
}

}  // namespace lockstep::apps
