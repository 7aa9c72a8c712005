#include <algorithm>
#include <limits>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/core/unheard.h"
#include "lockstep/data/permutation.h"
#include "lockstep/parallel/replica_checks.h"
#include "lockstep/parallel/trainer_impl.h"

namespace lockstep {

namespace {

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
  if (options.compare_every < 0) {
    throw UsageError(message("trainer: compare_every is ", options.compare_every,
                             ", want a number of steps, or 0 for never"));
  }
}

}  // namespace

Trainer::Impl::Impl(World& world_in, Sequential model_in, const Optimizer& optimizer_in,
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

std::unique_ptr<Trainer::Impl> Trainer::Impl::make(World& world, Sequential model,
                                                   const Optimizer& optimizer,
                                                   const TrainerOptions& options) {
  const LoggedErrors unheard(world.log(), "trainer");
  return std::make_unique<Impl>(world, std::move(model), optimizer, options);
}

void Trainer::Impl::make_replicas(int count) {
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
      .stall_limit = world.stall_limit(),
      .stop_request = reinterpret_cast<const std::uint32_t*>(stop.device_address())};
  world.run(count, [&](Communicator& communicator) {
    const auto rank = static_cast<std::size_t>(communicator.rank());
    made[rank] = std::make_unique<Replica>(world.devices().list[rank], setup, start);
  });
  replicas = std::move(made);
}

void Trainer::Impl::for_each_replica(const std::function<void(Replica&, Communicator&)>& work) {
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

void Trainer::Impl::salvage() {
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

void Trainer::Impl::bring_together() {
  if (apart) salvage();
  if (!replicas.empty() || !batches) return;
  make_replicas(batches->sharding.replicas);
  for_each_replica([&](Replica& replica, Communicator& communicator) {
    replica.begin(batches->train, batches->sharding, communicator);
  });
}

void Trainer::Impl::check_fits(const Dataset& data) const {
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

void Trainer::Impl::require_idle() const {
  if (at_work) {
    throw UsageError("trainer: called while it is at work; one call comes after another");
  }
}

void Trainer::Impl::require_begun() const {
  if (!batches) throw UsageError("trainer: no training data yet; call fit or begin first");
}

double Trainer::Impl::rate(std::int64_t step_in_epoch) const {
  const std::int64_t epoch = state().epoch;
  const std::int64_t steps = batches->steps;
  return options.schedule.rate(optimizer.base_lr(), {.epoch = epoch,
                                                     .step = epoch * steps + step_in_epoch,
                                                     .total_steps = batches->total_epochs * steps});
}

void Trainer::Impl::open_epoch() {
  shuffle_epoch(options.seed, state().epoch, batches->train.size(), permutation);
  learning_rates.resize(static_cast<std::size_t>(batches->steps));
  for (std::int64_t i = 0; i < batches->steps; ++i)
    learning_rates[static_cast<std::size_t>(i)] = static_cast<float>(rate(i));
  for_each_replica([&](Replica& replica, Communicator&) {
    replica.open_epoch({permutation, learning_rates});
  });
  epoch_open = true;
}

void Trainer::Impl::close_epoch() {
  for (const auto& replica : replicas) replica->close_epoch();
  epoch_open = false;
  train_seconds = 0;
}

std::int64_t Trainer::Impl::run_in_epoch(std::int64_t wanted) {
  require_begun();
  bring_together();
  if (!epoch_open) open_epoch();
  std::int64_t done = 0;
  while (done < wanted && steps_left() > 0) {
    done += run_to_checkpoint(wanted - done);
    if (steps_left() > 0) hand_out_if_due();
    if (stop_asked.load()) break;
  }
  return done;
}

/// A checkpoint that time asks for is a stop that the trainer itself asks for: all replicas come
/// back after the same step.
std::int64_t Trainer::Impl::run_to_checkpoint(std::int64_t wanted) {
  const TrainerClock::time_point begun = TrainerClock::now();
  // A pause is over; a stop that was asked for stays, also one that comes just now.
  stop_flag().store(0);
  if (stop_asked.load()) stop_flag().store(1);
  const std::int64_t first = state().step_in_epoch;
  const std::int64_t to_comparison = steps_to_comparison();
  const std::int64_t count = std::min({wanted, steps_left(), steps_to_checkpoint(), to_comparison});
  for_each_replica([&](Replica& replica, Communicator& communicator) {
    replica.run(communicator, count, [&] {
      if (communicator.rank() != 0 || replica.state().frozen != 0) return;
      if (due_by_time()) stop_flag().store(1);
      if (on_progress) report_step(replica);
    });
  });
  train_seconds += seconds_since(begun);
  // The reduced gradient is the same everywhere, so all replicas have stopped at the same step.
  if (state().frozen != 0) stop_or_skip();
  const std::int64_t ran = static_cast<std::int64_t>(state().step_in_epoch) - first;
  if (ran == to_comparison) compare_replicas();
  return ran;
}

void Trainer::Impl::stop_or_skip() {
  std::vector<Nonfinite> found(replicas.size());
  for_each_replica([&](Replica& replica, Communicator& communicator) {
    found[static_cast<std::size_t>(communicator.rank())] = replica.find_nonfinite(communicator);
  });
  const std::string what = nonfinite_message(state(), found, world.devices().list);
  if (std::any_of(found.begin(), found.end(), [](const auto& each) { return each.in_weights; })) {
    throw NonFiniteError(what + ". No step can mend that: start from other weights");
  }
  if (options.on_nonfinite == OnNonfinite::stop) {
    throw NonFiniteError(what +
                         "; the weights are those before that step. Lower the learning rate, set "
                         "clip_norm or look at the data; or have such steps skipped");
  }
  for (const auto& replica : replicas) replica->skip_step();
  if (steps_left() == 0 && replicas[0]->sums().steps == 0) {
    throw NonFiniteError(what + ". Every step of this epoch had to be skipped");
  }
  if (world.log()) world.log()(LogLevel::warning, what + "; skipped");
}

std::int64_t Trainer::Impl::steps_to_comparison() const {
  const std::int64_t every = options.compare_every;
  if (every == 0 || replicas.size() == 1) return std::numeric_limits<std::int64_t>::max();
  return every - static_cast<std::int64_t>(state().step % static_cast<std::uint64_t>(every));
}

void Trainer::Impl::compare_replicas() {
  std::vector<std::vector<std::uint64_t>> hashes(replicas.size());
  for_each_replica([&](Replica& replica, Communicator& communicator) {
    hashes[static_cast<std::size_t>(communicator.rank())] = replica.hash_state();
  });
  require_equal(hashes, replicas, layout, optimizer.moment_names(), world.devices().list);
}

void Trainer::Impl::report_step(const Replica& replica) const {
  const EpochSums& sums = replica.sums();
  on_progress({Progress::Phase::training, static_cast<int>(replica.state().epoch),
               replica.state().step_in_epoch, batches->steps,
               sums.ema_weight > 0 ? sums.ema / sums.ema_weight : 0});
}

EpochStats Trainer::Impl::epoch_stats() const {
  const EpochSums& sums = replicas[0]->sums();
  EpochStats stats;
  stats.epoch = static_cast<int>(state().epoch);
  stats.learning_rate = rate(0);
  stats.steps = static_cast<std::int64_t>(sums.steps);
  stats.skipped_steps = static_cast<std::int64_t>(sums.skipped);
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
    : impl_(Impl::make(world, std::move(model), optimizer, options)) {
  initialize_parameters(impl_->layout, impl_->options.seed, impl_->start.params.data());
}

Trainer::Trainer(World& world, const Model& model, SoftmaxCrossEntropy /*loss*/,
                 const Optimizer& optimizer, const TrainerOptions& options)
    : impl_(Impl::make(world, model.layers(), optimizer, options)) {
  impl_->start.params = model.arena();
  impl_->input_sample = model.input_sample();
}

Trainer::~Trainer() {
  const LoggedErrors unheard(impl_->world.log(), "trainer");
  impl_.reset();
}

void Trainer::on_epoch(std::function<void(const EpochStats&)> callback) {
  impl_->on_epoch = std::move(callback);
}

void Trainer::on_progress(std::function<void(const Progress&)> callback) {
  impl_->on_progress = std::move(callback);
}

void Trainer::begin(const Dataset& train, const BatchOptions& options) {
  Impl& impl = *impl_;
  const LoggedErrors unheard(impl.world.log(), "trainer");
  impl.require_idle();
  impl.check_fits(train);
  const Sharding sharding = impl.sharding_of(options);
  const std::int64_t steps = steps_per_epoch(train.size(), sharding.batch_size, options.last_batch);
  if (steps == 0) {
    throw UsageError(message("trainer: ", train.name(), " has ", train.size(),
                             " samples and a batch ", sharding.batch_size,
                             ": no step in an epoch; use a smaller batch or keep the last one"));
  }
  const std::int64_t first_epoch =
      impl.restored ? impl.fit.first_epoch
                    : impl.state().epoch + (impl.state().step_in_epoch == 0 ? 0 : 1);
  Impl::Batches batches{train, sharding, options.last_batch, steps, first_epoch + options.epochs};
  if (impl.restored) impl.check_same(batches);
  impl.batches.reset();  // until the replicas are ready
  impl.make_replicas(sharding.replicas);
  if (!impl.restored) {
    if (impl.state().step_in_epoch != 0) impl.close_epoch();
    impl.fit = {.first_epoch = static_cast<int>(first_epoch)};
    impl.best_params.clear();
    impl.train_seconds = 0;
  }
  impl.epoch_open = false;
  impl.for_each_replica([&](Replica& replica, Communicator& communicator) {
    replica.begin(train, sharding, communicator);
  });
  impl.input_sample = train.sample_shape();
  impl.batches = std::move(batches);
  impl.restored.reset();
  impl.handed_out = TrainerClock::now();
  impl.handed_out_step = impl.state().step;
}

Sharding Trainer::Impl::sharding_of(const BatchOptions& wanted) const {
  if (!restored) {
    return make_sharding(world.devices(), options.reduce, options.shards, wanted.batch_size,
                         wanted.batch_per_replica);
  }
  const std::int64_t batch_size =
      wanted.batch_per_replica > 0 ? restored->recipe.batch_size : wanted.batch_size;
  if (options.shards == 0) {
    return resume_sharding(world.devices(), options.reduce, restored->execution.shards, batch_size);
  }
  if (options.reduce == Reduce::invariant && options.shards != restored->execution.shards) {
    throw UsageError(message("trainer: ", options.shards, " shards; the checkpoint has ",
                             restored->execution.shards,
                             ", and in invariant mode they decide the result"));
  }
  return make_sharding(world.devices(), options.reduce, options.shards, batch_size, 0);
}

std::int64_t Trainer::run_steps(std::int64_t steps) {
  if (steps < 1) throw UsageError(message("trainer: run_steps(", steps, "), want 1 or more"));
  Impl& impl = *impl_;
  const LoggedErrors unheard(impl.world.log(), "trainer");
  impl.require_idle();
  impl.require_begun();
  impl.bring_together();
  std::int64_t done = 0;
  while (done < steps) {
    if (impl.steps_left() == 0) impl.close_epoch();
    const std::int64_t ran = impl.run_in_epoch(steps - done);
    done += ran;
    if (ran > 0 && impl.steps_left() == 0) impl.hand_out_if_due();
    if (stop_requested()) break;
  }
  return done;
}

EpochStats Trainer::Impl::finish_epoch() {
  run_in_epoch(std::numeric_limits<std::int64_t>::max());
  EpochStats stats = epoch_stats();
  if (steps_left() == 0) close_epoch();
  return stats;
}

EpochStats Trainer::run_epoch() {
  Impl& impl = *impl_;
  const LoggedErrors unheard(impl.world.log(), "trainer");
  impl.require_idle();
  const int epoch_before = epoch();
  EpochStats stats = impl.finish_epoch();
  if (epoch() > epoch_before) impl.hand_out_if_due();
  return stats;
}

EvalStats Trainer::evaluate(const Dataset& data) {
  Impl& impl = *impl_;
  const LoggedErrors unheard(impl.world.log(), "trainer");
  const TrainerClock::time_point begun = TrainerClock::now();
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

void Trainer::request_stop() noexcept {
  impl_->stop_asked.store(true);
  impl_->stop_flag().store(1);
}

bool Trainer::stop_requested() const noexcept {
  return impl_->stop_asked.load();
}

void Trainer::clear_stop() noexcept {
  impl_->stop_asked.store(false);
  impl_->stop_flag().store(0);
}

Model Trainer::model() const {
  const Impl& impl = *impl_;
  const LoggedErrors unheard(impl.world.log(), "trainer");
  if (!impl.input_sample) {
    throw UsageError(
        "trainer: the model's input shape is not known yet; call fit, begin or give a Model");
  }
  Model model(impl.model, *impl.input_sample);
  model.set_arena(impl.export_state().params);
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
  return impl_->batches->sharding;
}

}  // namespace lockstep
