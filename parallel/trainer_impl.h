// What a Trainer is made of. Internal.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/io/checkpoint.h"
#include "lockstep/parallel/replica.h"
#include "lockstep/parallel/trainer.h"

namespace lockstep {

using TrainerClock = std::chrono::steady_clock;

[[nodiscard]] inline double seconds_since(TrainerClock::time_point start) {
  return std::chrono::duration<double>(TrainerClock::now() - start).count();
}

struct Trainer::Impl {
  /// What `begin` sets up.
  struct Batches {
    Dataset train;
    Sharding sharding;
    LastBatch last_batch = LastBatch::keep;
    std::int64_t steps = 0;                        ///< of an epoch
    std::int64_t total_epochs = 0;                 ///< that the schedule is laid out for
    std::string data_sha256{};                     ///< of `train`; empty until it is asked for
    std::optional<TrainingExecution> execution{};  ///< none until it is asked for
  };

  Impl(World& world_in, Sequential model_in, const Optimizer& optimizer_in,
       const TrainerOptions& options_in);

  static std::unique_ptr<Impl> make(World& world, Sequential model, const Optimizer& optimizer,
                                    const TrainerOptions& options);

  // Replicas: trainer.cpp.

  /// Makes `count` replicas that go on from where training stands. Each is made by the thread that
  /// drives it.
  void make_replicas(int count);
  void for_each_replica(const std::function<void(Replica&, Communicator&)>& work);
  /// After a failed run: keeps what the first replica that can still be read has got to, and drops
  /// them all. Throws DeviceError when none can be read.
  void salvage();
  /// After a failed run: new replicas go on with training from where the old ones stood.
  void bring_together();

  /// Throws ShapeError unless samples and classes of `data` are what the model takes and gives.
  void check_fits(const Dataset& data) const;
  /// First in every call that trains: a callback may not make one.
  void require_idle() const;
  void require_begun() const;

  [[nodiscard]] const StepState& state() const {
    return replicas.empty() ? start.step : replicas[0]->state();
  }
  [[nodiscard]] TrainingState export_state() const {
    return replicas.empty() ? start : replicas[0]->export_state();
  }
  [[nodiscard]] double rate(std::int64_t step_in_epoch) const;

  // Epochs and steps: trainer.cpp.

  /// Lays out the epoch that training stands at.
  void open_epoch();
  void close_epoch();
  [[nodiscard]] std::int64_t steps_left() const { return batches->steps - state().step_in_epoch; }
  /// Runs `wanted` steps of the open epoch, or as many as it has left; fewer after a stop request.
  /// Hands out checkpoints that fall due before the last step of the epoch.
  std::int64_t run_in_epoch(std::int64_t wanted);
  /// The same up to the next checkpoint.
  std::int64_t run_to_checkpoint(std::int64_t wanted);
  [[nodiscard]] EpochStats epoch_stats() const;
  /// Runs the rest of the current epoch and closes it.
  EpochStats finish_epoch();
  void report_step(const Replica& replica) const;
  /// After a step that is not finite: throws NonFiniteError, or moves behind that step.
  void stop_or_skip();
  /// Steps up to the next comparison of the replicas.
  [[nodiscard]] std::int64_t steps_to_comparison() const;
  /// Throws DivergenceError unless all replicas are equal.
  void compare_replicas();

  [[nodiscard]] std::atomic_ref<std::uint32_t> stop_flag() const {
    return std::atomic_ref(*stop.as<std::uint32_t>());
  }

  // Checkpoints: checkpoints.cpp.

  /// Without what `begin` adds.
  [[nodiscard]] TrainingRecipe own_recipe() const;
  [[nodiscard]] TrainingRecipe recipe(Batches& of) const;
  [[nodiscard]] Checkpoint checkpoint();
  void restore(const Checkpoint& from);
  /// Throws UsageError where this would not go on with the training of the checkpoint.
  void check_same(Batches& now) const;
  /// As the options and, behind `restore`, the checkpoint have it.
  [[nodiscard]] Sharding sharding_of(const BatchOptions& wanted) const;
  /// Hands out a checkpoint now.
  void hand_out();
  void hand_out_if_due();
  [[nodiscard]] std::int64_t steps_to_checkpoint() const;
  [[nodiscard]] bool due_by_time() const;

  World& world;
  Sequential model;
  ParameterLayout layout;
  Optimizer optimizer;
  TrainerOptions options;
  TrainingState start;  ///< what replicas are made from
  std::optional<Shape> input_sample;

  std::vector<std::unique_ptr<Replica>> replicas;
  std::optional<Batches> batches;  ///< none before `begin`
  std::vector<std::int32_t> permutation;
  std::vector<float> learning_rates;
  bool epoch_open = false;
  bool at_work = false;      ///< the replicas are running
  bool apart = false;        ///< replicas may have stopped at different steps
  double train_seconds = 0;  ///< of the open epoch so far

  FitProgress fit;
  std::vector<float> best_params;  ///< of fit.best_epoch, where the fit ends with those
  /// Recipe and execution of the checkpoint that the next `begin` goes on from.
  struct Restored {
    TrainingRecipe recipe;
    TrainingExecution execution;
  };
  std::optional<Restored> restored;

  CheckpointTimes checkpoint_times;
  std::function<void(Checkpoint)> on_checkpoint;
  TrainerClock::time_point handed_out = TrainerClock::now();
  std::uint64_t handed_out_step = 0;  ///< a step that is skipped is no new one

  /// One word: above 0 when replicas are to come back after the current step; devices read it.
  HostBuffer stop;
  std::atomic<bool> stop_asked{false};  ///< by request_stop, not for a checkpoint
  std::function<void(const EpochStats&)> on_epoch;
  std::function<void(const Progress&)> on_progress;
};

}  // namespace lockstep
