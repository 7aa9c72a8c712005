// Trainer::fit: epochs, validation, early stopping, checkpoints.
#include "lockstep/core/error.h"
#include "lockstep/core/unheard.h"
#include "lockstep/parallel/trainer_impl.h"

namespace lockstep {

FitResult Trainer::fit(const Dataset& train, const FitOptions& options) {
  return fit(train, train.take(0), options);
}

FitResult Trainer::fit(const Dataset& train, const Dataset& validation, const FitOptions& options) {
  Impl& impl = *impl_;
  const LoggedErrors unheard(impl.world.log(), "trainer");
  if (options.epochs < 1)
    throw UsageError(message("fit: epochs is ", options.epochs, ", want 1 or more"));
  if (options.early_stopping < 0) {
    throw UsageError(
        message("fit: early_stopping is ", options.early_stopping, ", want 0 (never) or more"));
  }
  const bool validates = validation.size() > 0;
  if (!validates && (options.early_stopping > 0 || options.restore_best)) {
    throw UsageError("fit: early_stopping and restore_best need a validation set");
  }
  const bool resumes = impl.restored.has_value();
  begin(train, {options.batch_size, options.batch_per_replica, options.last_batch, options.epochs});
  if (!resumes) impl.hand_out();

  FitResult result;
  while (epoch() < impl.batches->total_epochs) {
    if (options.early_stopping > 0 && impl.fit.since_best >= options.early_stopping) {
      result.stopped_early = true;
      break;
    }
    const int epoch_before = epoch();
    EpochStats stats = impl.finish_epoch();
    if (epoch() == epoch_before) {  // stopped in the middle
      impl.hand_out();
      break;
    }
    ++result.epochs;
    if (validates) {
      const EvalStats evaluation = evaluate(validation);
      stats.has_validation = true;
      stats.val_loss = evaluation.loss;
      stats.val_accuracy = evaluation.accuracy();
      stats.eval_seconds = evaluation.seconds;
      stats.seconds += evaluation.seconds;
      ++impl.fit.since_best;
      if (evaluation.loss < impl.fit.best_loss) {
        impl.fit.best_loss = evaluation.loss;
        impl.fit.best_epoch = stats.epoch;
        impl.fit.since_best = 0;
        if (options.restore_best) impl.best_params = impl.export_state().params;
      }
    }
    if (impl.on_epoch) impl.on_epoch(stats);
    impl.hand_out();
    if (stop_requested()) break;
  }
  result.stop_requested = stop_requested();
  result.best_epoch = impl.fit.best_epoch;
  if (options.restore_best && !impl.best_params.empty()) {
    impl.for_each_replica(
        [&](Replica& replica, Communicator&) { replica.set_parameters(impl.best_params); });
  }
  clear_stop();
  return result;
}

}  // namespace lockstep
