#include "lockstep/parallel/trainer.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <utility>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/data/permutation.h"
#include "lockstep/parallel/replica.h"

namespace lockstep {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void check(const TrainerOptions& options) {
  if (!(options.l2 >= 0) || options.l2 == std::numeric_limits<float>::infinity()) {
    throw UsageError(message("trainer: l2 is ", options.l2, ", want a finite number from 0 up"));
  }
  if (!(options.clip_norm >= 0)) {
    throw UsageError(message("trainer: clip_norm is ", options.clip_norm,
                             ", want a number from 0 up (0: no clipping)"));
  }
  if (options.shards < 0)
    throw UsageError(message("trainer: shards is ", options.shards, ", want 0 or more"));
}

}  // namespace

struct Trainer::Impl {
  Impl(World& world_in, Sequential model_in, const Optimizer& optimizer_in,
       const TrainerOptions& options_in)
      : world(world_in),
        model(std::move(model_in)),
        layout(model),
        optimizer(optimizer_in),
        options(options_in),
        stop(world.devices().list.front(), sizeof(std::uint32_t), "the stop request") {
    check(options);
    (void)make_buckets(layout, options.bucket_bytes);  // refuses a bad bucket size now
    start.params.resize(static_cast<std::size_t>(layout.size()));
    start.moments.assign(optimizer.moment_names().size(), std::vector<float>(start.params.size()));
  }

  /// Makes `count` replicas that go on from where training stands. Each is made by the thread that
  /// drives it.
  void make_replicas(int count) {
    if (apart) salvage();
    if (static_cast<int>(replicas.size()) == count) return;
    if (!replicas.empty()) start = replicas[0]->export_state();
    replicas.clear();
    std::vector<std::unique_ptr<Replica>> made(static_cast<std::size_t>(count));
    const ReplicaSetup setup{
        .model = model,
        .layout = layout,
        .optimizer = optimizer,
        .seed = options.seed,
        .reduce = options.reduce,
        .bucket_bytes = options.bucket_bytes,
        .l2 = options.l2,
        .clip_norm = options.clip_norm,
        .precision = options.precision,
        .residence = options.residence,
        .graph = options.graph,
        .fuse = options.fuse,
        .stop_request = reinterpret_cast<const std::uint32_t*>(stop.device_address())};
    world.run(count, [&](Communicator& communicator) {
      const auto rank = static_cast<std::size_t>(communicator.rank());
      made[rank] = std::make_unique<Replica>(world.devices().list[rank], setup, start);
    });
    replicas = std::move(made);
  }

  void for_each_replica(const std::function<void(Replica&, Communicator&)>& work) {
    at_work = true;
    try {
      world.run(static_cast<int>(replicas.size()), [&](Communicator& communicator) {
        work(*replicas[static_cast<std::size_t>(communicator.rank())], communicator);
      });
    } catch (...) {
      at_work = false;
      // Threads stop at one step. GPUs that were cut off from each other may stop at two.
      apart = world.devices().list.front().kind == DeviceKind::cuda;
      try {
        if (apart) salvage();
      } catch (const Error&) {
        // What failed first is what to tell; this comes back at the next call.
      }
      throw;
    }
    at_work = false;
  }

  /// After a failed run: keeps what the first replica that can still be read has got to, and drops
  /// them all. Throws DeviceError when none can be read.
  void salvage() {
    for (const auto& replica : replicas) {
      try {
        start = replica->export_state();
        break;
      } catch (const Error&) {
        if (replica == replicas.back()) throw;
      }
    }
    replicas.clear();
    epoch_open = false;
    apart = false;
  }

  /// After a failed run: new replicas go on with training from where the old ones stood.
  void bring_together() {
    if (apart) salvage();
    if (!replicas.empty() || !train) return;
    make_replicas(sharding.replicas);
    for_each_replica([&](Replica& replica, Communicator& communicator) {
      replica.begin(*train, sharding, communicator);
    });
  }

  /// Throws ShapeError unless samples and classes of `data` are what the model takes and gives.
  void check_fits(const Dataset& data) const {
    const Shape& sample = data.sample_shape();
    if (input_sample && *input_sample != sample) {
      throw ShapeError(message("trainer: samples of ", data.name(), " are ", sample,
                               ", the model has been set up for ", *input_sample));
    }
    const Shape output = model.shapes(sample).back();  // names the layer that does not fit
    if (output.rank() != 1 || output[0] != data.class_count()) {
      throw ShapeError(message("trainer: the model's output for a sample is ", output, ", but ",
                               data.name(), " has ", data.class_count(),
                               " classes; the last layer must give one logit per class"));
    }
  }

  /// First in every call that trains: a callback may not make one.
  void require_idle() const {
    if (at_work) {
      throw UsageError("trainer: called while it is at work; one call comes after another");
    }
  }

  void require_begun() const {
    if (!train) throw UsageError("trainer: no training data yet; call fit or begin first");
  }

  [[nodiscard]] const StepState& state() const {
    return replicas.empty() ? start.step : replicas[0]->state();
  }

  [[nodiscard]] double rate(std::int64_t step_in_epoch) const {
    const std::int64_t epoch = state().epoch;
    return options.schedule.rate(optimizer.base_lr(), {.epoch = epoch,
                                                       .step = epoch * steps + step_in_epoch,
                                                       .total_steps = total_epochs * steps});
  }

  /// Lays out the epoch that training stands at.
  void open_epoch() {
    shuffle_epoch(options.seed, state().epoch, train->size(), permutation);
    learning_rates.resize(static_cast<std::size_t>(steps));
    for (std::int64_t i = 0; i < steps; ++i)
      learning_rates[static_cast<std::size_t>(i)] = static_cast<float>(rate(i));
    for_each_replica([&](Replica& replica, Communicator&) {
      replica.open_epoch({permutation, learning_rates});
    });
    epoch_open = true;
  }

  void close_epoch() {
    for (const auto& replica : replicas) replica->close_epoch();
    epoch_open = false;
    train_seconds = 0;
  }

  [[nodiscard]] std::int64_t steps_left() const { return steps - state().step_in_epoch; }

  std::int64_t run_in_epoch(std::int64_t wanted);
  [[nodiscard]] static std::string nonfinite_message(const Replica& replica);
  void report_step(const Replica& replica) const;
  [[nodiscard]] EpochStats epoch_stats() const;

  [[nodiscard]] std::atomic_ref<std::uint32_t> stop_flag() const {
    return std::atomic_ref(*stop.as<std::uint32_t>());
  }

  World& world;
  Sequential model;
  ParameterLayout layout;
  Optimizer optimizer;
  TrainerOptions options;
  TrainingState start;  ///< what replicas are made from
  std::optional<Shape> input_sample;

  std::vector<std::unique_ptr<Replica>> replicas;
  std::optional<Dataset> train;
  Sharding sharding;
  std::int64_t steps = 0;         ///< of an epoch
  std::int64_t total_epochs = 0;  ///< that the schedule is laid out for
  std::vector<std::int32_t> permutation;
  std::vector<float> learning_rates;
  bool epoch_open = false;
  bool at_work = false;      ///< the replicas are running
  bool apart = false;        ///< replicas may have stopped at different steps
  double train_seconds = 0;  ///< of the open epoch so far

  HostBuffer stop;  ///< one word: above 0 when a stop was asked for; devices read it
  std::function<void(const EpochStats&)> on_epoch;
  std::function<void(const Progress&)> on_progress;
};

/// Runs `wanted` steps of the open epoch, or as many as it has left; fewer after a stop request.
std::int64_t Trainer::Impl::run_in_epoch(std::int64_t wanted) {
  require_begun();
  bring_together();
  const Clock::time_point begun = Clock::now();
  if (!epoch_open) open_epoch();
  const std::int64_t count = std::min(wanted, steps_left());
  if (count == 0) return 0;
  const std::int64_t first = state().step_in_epoch;
  for_each_replica([&](Replica& replica, Communicator& communicator) {
    replica.run(communicator, count, [&] {
      if (communicator.rank() == 0 && on_progress && replica.state().frozen == 0) {
        report_step(replica);
      }
    });
  });
  train_seconds += seconds_since(begun);
  // The reduced gradient is the same everywhere, so all replicas have stopped at the same step.
  if (state().frozen != 0) throw NonFiniteError(nonfinite_message(*replicas[0]));
  return static_cast<std::int64_t>(state().step_in_epoch) - first;
}

std::string Trainer::Impl::nonfinite_message(const Replica& replica) {
  const std::string name = replica.first_nonfinite_gradient();
  return message("training: at step ", replica.state().step_in_epoch, " of epoch ",
                 replica.state().epoch, " the gradient is not finite",
                 name.empty() ? "" : ", first in " + name,
                 "; the weights are those before that step. Lower the learning rate, set "
                 "clip_norm or look at the data");
}

void Trainer::Impl::report_step(const Replica& replica) const {
  const EpochSums& sums = replica.sums();
  on_progress({Progress::Phase::training, static_cast<int>(replica.state().epoch),
               replica.state().step_in_epoch, steps,
               sums.ema_weight > 0 ? sums.ema / sums.ema_weight : 0});
}

EpochStats Trainer::Impl::epoch_stats() const {
  const EpochSums& sums = replicas[0]->sums();
  EpochStats stats;
  stats.epoch = static_cast<int>(state().epoch);
  stats.learning_rate = rate(0);
  stats.steps = static_cast<std::int64_t>(sums.steps);
  stats.samples = static_cast<std::int64_t>(sums.samples);
  if (sums.steps > 0) {
    stats.data_loss = sums.loss / sums.samples;
    stats.reg_loss = sums.reg_loss / sums.steps;
    stats.train_loss = stats.data_loss + stats.reg_loss;
    stats.train_accuracy = sums.correct / sums.samples;
    stats.train_loss_ema = sums.ema / sums.ema_weight;
  }
  stats.train_seconds = train_seconds;
  stats.seconds = train_seconds;
  return stats;
}

Trainer::Trainer(World& world, Sequential model, SoftmaxCrossEntropy /*loss*/,
                 const Optimizer& optimizer, const TrainerOptions& options)
    : impl_(std::make_unique<Impl>(world, std::move(model), optimizer, options)) {
  initialize_parameters(impl_->layout, impl_->options.seed, impl_->start.params.data());
}

Trainer::Trainer(World& world, const Model& model, SoftmaxCrossEntropy /*loss*/,
                 const Optimizer& optimizer, const TrainerOptions& options)
    : impl_(std::make_unique<Impl>(world, model.layers(), optimizer, options)) {
  impl_->start.params = model.arena();
  impl_->input_sample = model.input_sample();
}

Trainer::~Trainer() = default;

void Trainer::on_epoch(std::function<void(const EpochStats&)> callback) {
  impl_->on_epoch = std::move(callback);
}

void Trainer::on_progress(std::function<void(const Progress&)> callback) {
  impl_->on_progress = std::move(callback);
}

void Trainer::begin(const Dataset& train, const BatchOptions& options) {
  Impl& impl = *impl_;
  impl.require_idle();
  impl.check_fits(train);
  const Sharding sharding =
      make_sharding(impl.world.devices(), impl.options.reduce, impl.options.shards,
                    options.batch_size, options.batch_per_replica);
  const std::int64_t steps = steps_per_epoch(train.size(), sharding.batch_size, options.last_batch);
  if (steps == 0) {
    throw UsageError(message("trainer: ", train.name(), " has ", train.size(),
                             " samples and a batch ", sharding.batch_size,
                             ": no step in an epoch; use a smaller batch or keep the last one"));
  }
  impl.train.reset();  // until the replicas are ready
  impl.make_replicas(sharding.replicas);
  if (impl.state().step_in_epoch != 0) impl.close_epoch();
  impl.epoch_open = false;
  impl.for_each_replica([&](Replica& replica, Communicator& communicator) {
    replica.begin(train, sharding, communicator);
  });
  impl.train = train;
  impl.input_sample = train.sample_shape();
  impl.sharding = sharding;
  impl.steps = steps;
  impl.total_epochs = impl.state().epoch + options.epochs;
}

std::int64_t Trainer::run_steps(std::int64_t steps) {
  if (steps < 1) throw UsageError(message("trainer: run_steps(", steps, "), want 1 or more"));
  Impl& impl = *impl_;
  impl.require_idle();
  std::int64_t done = 0;
  while (done < steps) {
    if (impl.epoch_open && impl.steps_left() == 0) impl.close_epoch();
    done += impl.run_in_epoch(steps - done);
    if (stop_requested()) break;
  }
  return done;
}

EpochStats Trainer::run_epoch() {
  Impl& impl = *impl_;
  impl.require_idle();
  impl.run_in_epoch(std::numeric_limits<std::int64_t>::max());
  EpochStats stats = impl.epoch_stats();
  if (impl.steps_left() == 0) impl.close_epoch();
  return stats;
}

EvalStats Trainer::evaluate(const Dataset& data) {
  Impl& impl = *impl_;
  const Clock::time_point begun = Clock::now();
  impl.require_idle();
  impl.check_fits(data);
  impl.input_sample = data.sample_shape();
  impl.bring_together();
  const std::int64_t chunks = (data.size() + kEvaluationChunk - 1) / kEvaluationChunk;
  if (impl.replicas.empty()) {
    const std::int64_t most = impl.world.max_replicas();
    const bool automatic = impl.world.devices().automatic;
    impl.make_replicas(
        static_cast<int>(automatic ? std::clamp<std::int64_t>(chunks, 1, most) : most));
  }
  std::vector<std::vector<ChunkSums>> sums(impl.replicas.size());
  const int epoch = static_cast<int>(impl.state().epoch);
  impl.for_each_replica([&](Replica& replica, Communicator& communicator) {
    std::int64_t done = 0;
    const auto chunk_done = [&] {
      done = std::min(chunks, done + communicator.size());
      if (communicator.rank() == 0 && impl.on_progress) {
        impl.on_progress({Progress::Phase::evaluation, epoch, done, chunks, 0});
      }
    };
    replica.evaluator().run(data, communicator.rank(), communicator.size(), chunk_done,
                            sums[static_cast<std::size_t>(communicator.rank())]);
  });
  EvalStats stats;
  stats.samples = data.size();
  for (std::size_t chunk = 0; chunk < static_cast<std::size_t>(chunks); ++chunk) {
    const ChunkSums& part = sums[chunk % sums.size()][chunk / sums.size()];
    stats.loss += part.loss;
    stats.correct += part.correct;
  }
  if (stats.samples > 0) stats.loss /= static_cast<double>(stats.samples);
  stats.seconds = seconds_since(begun);
  return stats;
}

FitResult Trainer::fit(const Dataset& train, const FitOptions& options) {
  return fit(train, train.take(0), options);
}

FitResult Trainer::fit(const Dataset& train, const Dataset& validation, const FitOptions& options) {
  Impl& impl = *impl_;
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
  begin(train, {options.batch_size, options.batch_per_replica, options.last_batch, options.epochs});

  FitResult result;
  double best_loss = std::numeric_limits<double>::infinity();
  int since_best = 0;
  std::vector<float> best_params;
  while (result.epochs < options.epochs) {
    const int epoch_before = epoch();
    EpochStats stats = run_epoch();
    if (epoch() == epoch_before) break;  // stopped in the middle
    ++result.epochs;
    if (validates) {
      const EvalStats evaluation = evaluate(validation);
      stats.has_validation = true;
      stats.val_loss = evaluation.loss;
      stats.val_accuracy = evaluation.accuracy();
      stats.eval_seconds = evaluation.seconds;
      stats.seconds += evaluation.seconds;
      ++since_best;
      if (evaluation.loss < best_loss) {
        best_loss = evaluation.loss;
        result.best_epoch = stats.epoch;
        since_best = 0;
        if (options.restore_best) best_params = impl.replicas[0]->export_state().params;
      }
    }
    if (impl.on_epoch) impl.on_epoch(stats);
    if (stop_requested()) break;
    if (options.early_stopping > 0 && since_best >= options.early_stopping) {
      result.stopped_early = true;
      break;
    }
  }
  result.stop_requested = stop_requested();
  if (!best_params.empty()) {
    impl.for_each_replica(
        [&](Replica& replica, Communicator&) { replica.set_parameters(best_params); });
  }
  clear_stop();
  return result;
}

void Trainer::request_stop() noexcept {
  impl_->stop_flag().store(1, std::memory_order_relaxed);
}

bool Trainer::stop_requested() const noexcept {
  return impl_->stop_flag().load(std::memory_order_relaxed) != 0;
}

void Trainer::clear_stop() noexcept {
  impl_->stop_flag().store(0, std::memory_order_relaxed);
}

Model Trainer::model() const {
  const Impl& impl = *impl_;
  if (!impl.input_sample) {
    throw UsageError(
        "trainer: the model's input shape is not known yet; call fit, begin or give a Model");
  }
  Model model(impl.model, *impl.input_sample);
  model.set_arena(impl.replicas.empty() ? impl.start.params
                                        : impl.replicas[0]->export_state().params);
  return model;
}

int Trainer::epoch() const {
  return static_cast<int>(impl_->state().epoch);
}

std::int64_t Trainer::step() const {
  return static_cast<std::int64_t>(impl_->state().step);
}

int Trainer::replicas() const {
  return static_cast<int>(impl_->replicas.size());
}

const Sharding& Trainer::sharding() const {
  impl_->require_begun();
  return impl_->sharding;
}

}  // namespace lockstep
