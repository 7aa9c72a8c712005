// The replica's memory, and how its steps are launched and looked at. step.cpp has the step itself.
#include "lockstep/parallel/replica.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/kernels/reduce.h"

namespace lockstep {

namespace {

void fill(const Context& context, const Arena& arena, const std::vector<float>& values) {
  context.copy_to_device(arena.data(), values.data(), values.size() * sizeof(float));
  context.synchronize();  // `values` need not outlive the call
}

/// 1 for every element that decays.
std::vector<float> decay_mask(const ParameterLayout& layout) {
  std::vector<float> mask(static_cast<std::size_t>(layout.size()));
  for (const Parameter& parameter : layout.parameters()) {
    if (!parameter.spec.decays) continue;
    std::fill_n(mask.begin() + parameter.place.offset, parameter.place.count, 1.0F);
  }
  return mask;
}

}  // namespace

Replica::Replica(Device device, const ReplicaSetup& setup, const TrainingState& start)
    : setup_(setup),
      context_(device),
      params_(device, setup.layout.size(), "the parameters"),
      grads_(device, setup.layout.gradient_size(), "the gradients"),
      decay_mask_(device, setup.layout.size(), "the decay mask"),
      scratch_(device,
               static_cast<std::size_t>(sum_scratch_doubles(setup.layout.size())) * sizeof(double),
               "the scratch of sums"),
      hash_(device, sizeof(std::uint64_t), "a hash"),
      state_(device, sizeof(DeviceState), "the step state"),
      abandoned_(device, sizeof(std::uint32_t), "the sign of failure"),
      abandoned_address_(reinterpret_cast<const std::uint32_t*>(abandoned_.device_address())),
      buckets_(make_buckets(setup.layout, setup.bucket_bytes)),
      seen_{.step = start.step, .sums = start.sums},
      looks_{Look(device), Look(device)},
      evaluator_(context_, setup.model, setup.layout, params_.data(), setup.residence, setup.fuse) {
  context_.set_precision(setup.precision);
  std::vector<float> mask = decay_mask(setup.layout);
  fill(context_, decay_mask_, mask);
  if (setup.l2 > 0) {
    for (float& factor : mask) factor *= setup.l2;
    l2_factor_ = Arena(device, setup.layout.size(), "the L2 factors");
    fill(context_, l2_factor_, mask);
  }
  set_parameters(start.params);
  for (const std::vector<float>& moment : start.moments) {
    moments_.emplace_back(device, setup.layout.size(), "the optimizer's moments");
    fill(context_, moments_.back(), moment);
    moment_pointers_.push_back(moments_.back().data());
  }
}

void Replica::set_parameters(const std::vector<float>& params) {
  const CurrentDevice current(context_.device());
  fill(context_, params_, params);
}

void Replica::begin(const Dataset& train, const Sharding& sharding, Communicator& communicator) {
  PlanOptions options{.block = block_samples(context_, setup_.model, train.sample_shape(),
                                             sharding.shard_samples, setup_.fuse),
                      .training = true,
                      .seed = setup_.seed,
                      .soft_classes = train.soft_classes(),
                      .fuse = setup_.fuse};
  *graph_ = {};
  plan_.reset();
  shards_at_once_ = 1;
  shard_grads_ = {};
  const std::int64_t stride = setup_.layout.gradient_size();
  if (setup_.reduce == Reduce::invariant && sharding.per_replica() > 1) {
    PlanOptions at_once = options;
    at_once.shards = sharding.per_replica();
    at_once.block *= at_once.shards;
    if (plan_can_span_shards(context_, setup_.model, train.sample_shape(), at_once)) {
      options = at_once;
      shards_at_once_ = options.shards;
      shard_grads_ =
          Arena(context_.device(), stride * options.shards, "the gradients of the shards");
    }
  }
  plan_ = std::make_unique<Plan>(context_, setup_.model, setup_.layout, train.sample_shape(),
                                 options, params_.data(), plan_grads());
  tree_.emplace(context_.device(), shards_at_once_ > 1 ? 1 : sharding.per_replica(), stride);
  sharding_ = sharding;
  const std::int64_t places = sharding.per_replica() * sharding.shard_samples;
  feed_.reset();
  feed_ = std::make_unique<Feed>(context_, train, setup_.residence,
                                 FeedPlaces{.batch_size = sharding.batch_size,
                                            .first = communicator.rank() * places,
                                            .count = places});
  permutation_ = {};
  learning_rates_ = {};
  std::int64_t largest = 0;
  for (const Bucket& bucket : buckets_) largest = std::max(largest, bucket.count);
  communicator.reserve(largest, setup_.reduce == Reduce::invariant);
  warm_ = false;
}

void Replica::open_epoch(const EpochPlan& epoch) {
  const auto samples = static_cast<std::int64_t>(epoch.permutation.size());
  tables_ = {.permutation = epoch.permutation.data(),
             .samples = samples,
             .learning_rates = epoch.learning_rates.data(),
             .steps = static_cast<std::int64_t>(epoch.learning_rates.size()),
             .batch_size = sharding_.batch_size};
  feed_->start_epoch(epoch.permutation.data(), samples);
  if (context_.on_cpu()) return;
  // Equally long in every epoch: a recorded step finds them where they were.
  const std::size_t order_bytes = epoch.permutation.size() * sizeof(std::int32_t);
  const std::size_t rate_bytes = epoch.learning_rates.size() * sizeof(float);
  if (permutation_.bytes() == 0) {
    permutation_ = Buffer(context_.device(), order_bytes, "the order of the samples");
    learning_rates_ = Buffer(context_.device(), rate_bytes, "the learning rates");
  }
  context_.copy_to_device(permutation_.data(), epoch.permutation.data(), order_bytes);
  context_.copy_to_device(learning_rates_.data(), epoch.learning_rates.data(), rate_bytes);
  context_.synchronize();
  tables_.permutation = permutation_.as<std::int32_t>();
  tables_.learning_rates = learning_rates_.as<float>();
}

void Replica::close_epoch() {
  ++seen_.step.epoch;
  seen_.step.step_in_epoch = 0;
  seen_.sums = {.ema = seen_.sums.ema, .ema_weight = seen_.sums.ema_weight};
}

void Replica::run(Communicator& communicator, std::int64_t count,
                  const std::function<void()>& progressed) {
  seen_.step.frozen = 0;
  seen_.sums.stop = 0;
  const bool uses_graph = !context_.on_cpu() && setup_.graph;
  try {
    if (!context_.on_cpu() && !warm_) warm_up(communicator);
    if (uses_graph && !graph_is_valid()) record(communicator);
    write_state();
    device_leads_ = true;
    run_windows(communicator, count, progressed);
    device_leads_ = false;
  } catch (...) {
    // Reductions under way on GPUs will be aborted: their rubbish must not get into the weights.
    // (On a CPU one that has begun is finished, and the replica goes on.)
    if (!context_.on_cpu()) std::atomic_ref(*abandoned_.as<std::uint32_t>()).store(1);
    throw;
  }
}

/// A CPU is looked at after every step. A GPU is looked at while it works on the next window of
/// steps: it never waits for the host, and is never more than two windows behind it. A window of
/// steps that are not recorded is one step: a few hundred launches that wait for a rank which has
/// failed would block the host, which then never hears of it.
void Replica::run_windows(Communicator& communicator, std::int64_t count,
                          const std::function<void()>& progressed) {
  const std::int64_t window = graph_->recorded() ? Feed::kWindow : 1;
  const std::size_t behind = context_.on_cpu() ? 0 : 1;
  std::int64_t at = seen_.step.step_in_epoch;
  const std::int64_t end = at + count;
  std::size_t sent = 0;
  std::size_t received = 0;
  const auto receive_next = [&] {
    receive(looks_[received % looks_.size()], communicator);
    ++received;
    progressed();
  };
  while (at < end && seen_.step.frozen == 0 && seen_.sums.stop == 0) {
    const std::int64_t steps = std::min(end - at, window - at % window);
    feed_->provide(context_, at);
    for (std::int64_t i = 0; i < steps; ++i) {
      if (graph_->recorded()) {
        graph_->launch(context_);
      } else {
        step(communicator);
      }
    }
    at += steps;
    send(looks_[sent % looks_.size()]);
    ++sent;
    if (sent - received > behind) receive_next();
  }
  while (received < sent) receive_next();
}

bool Replica::graph_is_valid() const {
  return graph_->recorded() && graph_workspace_ == context_.workspace_moves();
}

/// A step with no effect: the state is frozen.
void Replica::void_step(Communicator& communicator) {
  const DeviceState before = seen_;
  seen_.step.frozen = 1;
  write_state();
  feed_->provide(context_, seen_.step.step_in_epoch);
  step(communicator);
  send(looks_[0]);
  receive(looks_[0], communicator);
  seen_ = before;
}

/// Lets the libraries set themselves up and the driver load the kernels, in a step without
/// reductions: both may wait for the whole GPU, which must not wait for another rank meanwhile.
void Replica::warm_up(Communicator& communicator) {
  const Range range(context_, "warm up");
  reduces_ = false;
  void_step(communicator);
  reduces_ = true;
  communicator.barrier();
  warm_ = true;
}

/// Records a step, after one with no effect in which the libraries set themselves up.
void Replica::record(Communicator& communicator) {
  const Range range(context_, "record a step");
  void_step(communicator);
  communicator.barrier();
  communicator.will_record(graph_);
  graph_->record(context_, [&] { step(communicator); });
  graph_workspace_ = context_.workspace_moves();
  communicator.barrier();  // nobody launches while somebody still records
}

void Replica::write_state() {
  context_.copy_to_device(state_.data(), &seen_, sizeof(DeviceState));
  context_.synchronize();
}

void Replica::send(const Look& look) {
  context_.copy_to_host(look.copy.data(), state_.data(), sizeof(DeviceState));
  look.arrived.record(context_);
}

/// Waits for a copy of the device's state, and meanwhile minds the others.
void Replica::receive(const Look& look, Communicator& communicator) {
  const auto deadline = std::chrono::steady_clock::now() + setup_.stall_limit;
  while (!look.arrived.reached()) {
    communicator.check();
    if (std::chrono::steady_clock::now() > deadline) {
      throw CommError(message(context_.device().to_string(), ": nothing heard of the GPU for ",
                              setup_.stall_limit.count(), " s after step ",
                              seen_.step.step_in_epoch, " of epoch ", seen_.step.epoch,
                              ": it hangs, or waits in a reduction for a rank that does not come; "
                              "nvidia-smi shows which GPU is busy. Raise "
                              "WorldOptions::stall_limit where steps take so long"));
    }
    std::this_thread::yield();
  }
  std::memcpy(static_cast<void*>(&seen_), look.copy.data(), sizeof(DeviceState));
}

TrainingState Replica::export_state() const {
  const CurrentDevice current(context_.device());
  TrainingState state;
  state.params = context_.read(params_.data(), params_.size());
  for (const Arena& moment : moments_)
    state.moments.push_back(context_.read(moment.data(), moment.size()));
  DeviceState reached = seen_;
  if (device_leads_) {
    context_.copy_to_host(&reached, state_.data(), sizeof(DeviceState));
    context_.synchronize();
  }
  state.step = reached.step;
  state.sums = reached.sums;
  return state;
}

}  // namespace lockstep
