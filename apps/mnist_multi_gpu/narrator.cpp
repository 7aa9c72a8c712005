#include "apps/mnist_multi_gpu/narrator.h"

#include <iostream>

#include "lockstep/core/error.h"

#include "apps/setup.h"
#include "apps/text.h"

namespace lockstep::apps {

Narrator::Narrator(const TrainOptions& options, ProgressBar& bar)
    : options_(options),
      bar_(bar),
      schedule_(make_schedule(options)),
      base_rate_(make_optimizer(options).base_lr()),
      human_(!options.output.json && !options.output.quiet) {}

void Narrator::start(const TrainReport& report, const Json& config) {
  steps_per_epoch_ = report.steps_per_epoch;
  if (human_) write_train_start(std::cout, report);
  if (options_.output.json) write_event(std::cout, start_event(config, report.resumed));
}

void Narrator::progress(const Progress& progress) {
  const bool training = progress.phase == Progress::Phase::training;
  if (training) open_epoch(progress.epoch);
  const std::string label =
      message(training ? "epoch " : "evaluation ", training ? message(progress.epoch) : "");
  bar_.show(label, progress.done, progress.total,
            training ? "loss " + fixed(progress.loss_ema, 4) : "");
}

void Narrator::epoch(const EpochStats& epoch) {
  open_epoch(epoch.epoch);
  bar_.erase();
  if (human_) write_epoch_end(std::cout, epoch);
  if (options_.output.json) write_event(std::cout, epoch_event(epoch));
}

void Narrator::end(const TrainEnd& end) {
  bar_.erase();
  if (human_) write_train_end(std::cout, end);
  if (options_.output.json) write_event(std::cout, result_event(end));
}

/// The line with the learning rate comes before the figures of its epoch, as in the article.
void Narrator::open_epoch(int epoch) {
  if (epoch == open_epoch_) return;
  open_epoch_ = epoch;
  bar_.erase();
  if (!human_) return;
  const double rate =
      schedule_.rate(base_rate_, {.epoch = epoch,
                                  .step = epoch * steps_per_epoch_,
                                  .total_steps = options_.epochs * steps_per_epoch_});
  write_epoch_start(std::cout, epoch, rate);
}

}  // namespace lockstep::apps
