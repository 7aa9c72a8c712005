// Synchronous training of one model on all replicas of a world.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "lockstep/core/stats.h"
#include "lockstep/data/dataset.h"
#include "lockstep/io/checkpoint.h"
#include "lockstep/layers/loss.h"
#include "lockstep/layers/model.h"
#include "lockstep/layers/sequential.h"
#include "lockstep/optim/optimizer.h"
#include "lockstep/optim/schedule.h"
#include "lockstep/parallel/sharding.h"
#include "lockstep/parallel/world.h"

namespace lockstep {

/// What becomes of a step whose gradient is not finite. It changes no weight in either case.
enum class OnNonfinite {
  stop,  ///< training ends with NonFiniteError
  skip,  ///< its samples are left out, and training goes on; not where weights are not finite
};

struct TrainerOptions {
  std::uint64_t seed = 0;  ///< of initial weights, shuffles and dropout
  Reduce reduce = Reduce::fast;
  int shards = 0;  ///< of a global batch; 0: one per replica (fast) or 8 (invariant)
  std::int64_t bucket_bytes = std::int64_t{1}
                              << 20;  ///< gradients reduced by one collective; at least 64
  Schedule schedule{};
  float l2 =
      0;  ///< weight of sum(w^2) / 2 over all weights, added to the loss as a term of its own
  float clip_norm = 0;  ///< largest global gradient norm; 0: no clipping
  Precision precision = Precision::fp32;
  Residence residence = Residence::automatic;  ///< of data sets, on CUDA
  bool graph = true;  ///< on CUDA a step is one launch; the same bits without
  bool fuse = true;   ///< neighbouring layers become one operation where there is one
  OnNonfinite on_nonfinite = OnNonfinite::stop;
  /// Whenever the number of updates is a multiple of this, weights and moments of all replicas are
  /// compared, bit by bit; 0: never.
  std::int64_t compare_every = 1000;
};

/// How the samples of an epoch become steps.
struct BatchOptions {
  std::int64_t batch_size = 128;       ///< of the whole world
  std::int64_t batch_per_replica = 0;  ///< above 0: batch_size is this times the replicas
  LastBatch last_batch = LastBatch::keep;
  int epochs = 1;  ///< that will be run: what a schedule with an end (CosineDecay) is laid out for
};

struct FitOptions {
  int epochs = 1;
  std::int64_t batch_size = 128;       ///< as in BatchOptions
  std::int64_t batch_per_replica = 0;  ///< as in BatchOptions
  LastBatch last_batch = LastBatch::keep;
  int early_stopping = 0;  ///< stop after so many epochs without a lower validation loss; 0: never
  bool restore_best = false;  ///< end with the weights of the epoch with the lowest validation loss
};

struct FitResult {
  int epochs = 0;  ///< finished in this call
  bool stop_requested = false;
  bool stopped_early = false;  ///< by early_stopping
  int best_epoch = -1;         ///< lowest validation loss of this call; -1 without validation
};

/// When a Trainer hands out checkpoints beside those at the ends of epochs. Both count from `begin`
/// and from the one before.
struct CheckpointTimes {
  std::int64_t every_steps = 0;  ///< when the number of updates is a multiple; 0: not by steps
  double every_seconds = 0;      ///< 0: not by time
};

/// Told on the calling thread while steps or evaluation chunks go by.
struct Progress {
  enum class Phase { training, evaluation };
  Phase phase = Phase::training;
  int epoch = 0;
  std::int64_t done = 0;   ///< steps or chunks
  std::int64_t total = 0;  ///< of this epoch or evaluation
  double loss_ema = 0;     ///< training only
};

/// Trains a model. `fit` is begin + run_epoch + evaluate in a loop; all are there one by one as
/// well:
///
///   trainer.begin(mnist.train, {.batch_size = 128});
///   while (trainer.epoch() < 2) {
///     const EpochStats epoch = trainer.run_epoch();
///     const EvalStats validation = trainer.evaluate(mnist.validation);
///   }
class Trainer {
 public:
  /// The world must outlive the trainer.
  Trainer(World& world, Sequential model, SoftmaxCrossEntropy loss, const Optimizer& optimizer,
          const TrainerOptions& options = {});
  /// Goes on from a model's weights.
  Trainer(World& world, const Model& model, SoftmaxCrossEntropy loss, const Optimizer& optimizer,
          const TrainerOptions& options = {});
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  /// Called after every epoch of `fit`, on its thread.
  void on_epoch(std::function<void(const EpochStats&)> callback);
  /// Called while steps and chunks go by, on the thread that called.
  void on_progress(std::function<void(const Progress&)> callback);

  /// Called with a checkpoint, on the thread that called and while all replicas stand still: by
  /// `fit` when a training begins at its first step, after every epoch (behind its validation and
  /// on_epoch) and when a stop request ends it; by all that train when `times` says so. What it
  /// throws ends training.
  void on_checkpoint(std::function<void(Checkpoint)> callback, const CheckpointTimes& times = {});

  /// Trains for `options.epochs` more epochs, evaluating `validation` after each. What a replica
  /// throws ends it, with rank and device in the message. Throws UsageError for options that cannot
  /// work, ShapeError when data and model do not fit, NonFiniteError naming step, rank and layer
  /// when a gradient is not finite: the weights are those before that step. DivergenceError naming
  /// step, tensor and ranks when replicas are no longer equal. Behind `restore` it goes on
  /// with the fit that the checkpoint was made in: `options` are those of the whole fit, and what
  /// is left of its epochs is run.
  FitResult fit(const Dataset& train, const Dataset& validation, const FitOptions& options);
  FitResult fit(const Dataset& train, const FitOptions& options);

  /// Sets up training on `train`: sharding, plans, buffers. Weights, moments and counters go on
  /// from before; an epoch that was under way ends here. Behind `restore` it does not: training
  /// goes on at the checkpoint's step, with its shards where the devices can share them and, for
  /// `batch_per_replica`, with its batch size. UsageError when data or batches are others.
  void begin(const Dataset& train, const BatchOptions& options = {});
  /// Runs `steps` steps, going on to the next epoch where one ends; returns how many ran: fewer
  /// only after a stop request.
  std::int64_t run_steps(std::int64_t steps);
  /// Runs the rest of the current epoch, closes it and returns its figures, validation left out; an
  /// epoch whose last step `run_steps` has just done is closed as it is. After a stop request the
  /// epoch stays open and the figures are those so far.
  EpochStats run_epoch();
  /// Exact pass over all of `data` in chunks of 256, dealt round-robin to the replicas; changes
  /// nothing in training.
  EvalStats evaluate(const Dataset& data);

  /// Everything that training can go on from, as a value; `config` and `parent` are left empty.
  /// Between two calls, or in a callback other than on_progress. UsageError before the first
  /// `begin`.
  [[nodiscard]] Checkpoint checkpoint() const;
  /// Makes the next `begin` or `fit` go on from a checkpoint instead of from where this trainer
  /// stands. With equal devices and options it then computes the same bits as a training that was
  /// never interrupted; bit_differences says when it need not. Throws UsageError when model,
  /// optimizer or options that decide the result are not those of the checkpoint, or its tensors
  /// are not the model's: then nothing has changed.
  void restore(const Checkpoint& checkpoint);

  /// Asks training to stop after the current step; GPUs are a few dozen steps ahead of the host and
  /// finish those. Safe from any thread and from signal handlers.
  void request_stop() noexcept;
  [[nodiscard]] bool stop_requested() const noexcept;
  /// Takes a stop request back; `fit` does so when it returns.
  void clear_stop() noexcept;

  /// A copy of the model with the current weights.
  [[nodiscard]] Model model() const;
  /// Finished epochs, and updates done in all.
  [[nodiscard]] int epoch() const;
  [[nodiscard]] std::int64_t step() const;
  /// Replicas at work; 0 before the first `begin` or `evaluate`.
  [[nodiscard]] int replicas() const;
  /// How batches are split; set by `begin`.
  [[nodiscard]] const Sharding& sharding() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// How such a training is computed: for bit_differences.
[[nodiscard]] TrainingExecution execution_of(const Devices& devices, const Sharding& sharding,
                                             const Sequential& model, const Shape& input_sample,
                                             bool fuse);

}  // namespace lockstep
