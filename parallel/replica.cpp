#include "lockstep/parallel/replica.h"

#include <algorithm>
#include <cmath>
#include <new>

#include "lockstep/core/error.h"
#include "lockstep/kernels/optimize.h"
#include "lockstep/kernels/reduce.h"
#include "lockstep/kernels/softmax_cross_entropy.h"

namespace lockstep {

namespace {

/// On a CPU the data set is where the replica can read it.
DeviceSamples stage(const Dataset& data) {
  DeviceSamples samples;
  samples.bytes = data.bytes();
  samples.floats = data.floats();
  samples.classes = data.classes();
  samples.soft = data.soft_targets();
  samples.count = data.size();
  samples.features = data.sample_shape().count();
  samples.soft_classes = data.soft_targets() != nullptr ? data.class_count() : 0;
  samples.scale = data.scale();
  return samples;
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
      state_(device, sizeof(DeviceState), "the step state"),
      buckets_(make_buckets(setup.layout, setup.bucket_bytes)) {
  for (const Parameter& parameter : setup.layout.parameters()) {
    if (parameter.spec.decays)
      std::fill_n(decay_mask_.at(parameter.place), parameter.place.count, 1.0F);
  }
  if (setup.l2 > 0) {
    l2_factor_ = Arena(device, setup.layout.size(), "the L2 factors");
    for (std::int64_t i = 0; i < l2_factor_.size(); ++i)
      l2_factor_.data()[i] = setup.l2 * decay_mask_.data()[i];
  }
  set_parameters(start.params);
  for (const std::vector<float>& moment : start.moments) {
    moments_.emplace_back(device, setup.layout.size(), "the optimizer's moments");
    std::copy(moment.begin(), moment.end(), moments_.back().data());
    moment_pointers_.push_back(moments_.back().data());
  }
  new (state_.data()) DeviceState{.step = start.step, .sums = start.sums, .evaluation = {}};
}

void Replica::set_parameters(const std::vector<float>& params) {
  std::copy(params.begin(), params.end(), params_.data());
}

StepTail* Replica::tail() const {
  return reinterpret_cast<StepTail*>(grads_.data() + setup_.layout.size());
}

void Replica::begin(const Dataset& train, const Sharding& sharding) {
  const PlanOptions options{
      .block = cpu_block_samples(setup_.model, train.sample_shape(), sharding.shard_samples),
      .training = true,
      .seed = setup_.seed,
      .soft_classes = train.soft_targets() != nullptr ? train.class_count() : 0};
  plan_ = std::make_unique<Plan>(context_, setup_.model, setup_.layout, train.sample_shape(),
                                 options, params_.data(), grads_.data());
  tree_.emplace(context_.device(), sharding.per_replica(), setup_.layout.gradient_size());
  sharding_ = sharding;
  samples_ = stage(train);
}

void Replica::open_epoch(const EpochTables& tables, std::uint32_t* stop_request) {
  tables_ = tables;
  stop_request_ = stop_request;
}

void Replica::step(Communicator& communicator) {
  open_step(context_, tables_, stop_request_, &device_state()->step);
  for (int index = 0; index < sharding_.per_replica(); ++index) run_shard(communicator, index);
  update();
}

/// Gradient of the rank's shard number `index`. Blocks without a sample are left out: they would
/// add zeros.
void Replica::run_shard(Communicator& communicator, int index) {
  const StepState* state = &device_state()->step;
  const std::int64_t shard = std::int64_t{communicator.rank()} * sharding_.per_replica() + index;
  const std::int64_t first = shard * sharding_.shard_samples;
  const std::int64_t end = first + sharding_.shard_samples;
  const std::int64_t last_sample = std::min<std::int64_t>(end, state->real_samples);

  // The first block always runs: it is the one that overwrites the gradients of the step before.
  std::int64_t place = first;
  do {
    const bool first_block = place == first;
    const bool last_block = place + plan_->block() >= last_sample;
    gather(context_, samples_, tables_, state, place, end, plan_->input());
    plan_->forward(context_, state);
    plan_->loss(context_, state);
    sum_losses(context_, state, plan_->losses(), plan_->correct(), plan_->block(), tail(),
               !first_block);
    for (int layer = plan_->layers() - 1; layer >= 0; --layer) {
      plan_->backward(context_, state, layer, first_block);
      if (last_block) finish_layer(communicator, index, layer);
    }
    place += plan_->block();
  } while (place < last_sample);
}

/// Hands on the buckets that the backward pass of `layer` completed: to the tree over the rank's
/// shards, and after the last shard to the other replicas.
void Replica::finish_layer(Communicator& communicator, int index, int layer) {
  for (const Bucket& bucket : buckets_) {
    if (bucket.ready_after != layer) continue;
    float* grads = grads_.data() + bucket.first;
    tree_->add(context_, index, bucket.first, bucket.count, grads);
    if (index + 1 == sharding_.per_replica()) {
      communicator.all_reduce(context_, grads, bucket.count, setup_.reduce == Reduce::invariant);
    }
  }
}

/// Everything behind the reduction, the same on all replicas.
void Replica::update() {
  DeviceState* state = device_state();
  const std::int64_t size = setup_.layout.size();
  double* l2 = nullptr;
  if (l2_factor_.size() > 0) {
    l2 = &state->l2_term;
    l2_term(context_, l2_factor_.data(), params_.data(), size, scratch_.as<double>(), l2);
    add_l2_gradient(context_, l2_factor_.data(), params_.data(), grads_.data(), size);
  }
  sum_of_squares(context_, grads_.data(), size, scratch_.as<double>(), &state->sum_of_squares);
  finish_norm(context_, &state->sum_of_squares, setup_.clip_norm, &state->step);
  setup_.optimizer.update(context_, &state->step, grads_.data(), decay_mask_.data(), params_.data(),
                          moment_pointers_.data(), size);
  close_step(context_, tail(), l2, &state->step, &state->sums);
}

void Replica::close_epoch() {
  StepState& step = device_state()->step;
  ++step.epoch;
  step.step_in_epoch = 0;
  EpochSums& sums = device_state()->sums;
  sums = {.ema = sums.ema, .ema_weight = sums.ema_weight};
}

void Replica::evaluate(const Dataset& data, int rank, int size,
                       const std::function<void()>& chunk_done, std::vector<ChunkSums>& sums) {
  const std::int64_t soft_classes = data.soft_targets() != nullptr ? data.class_count() : 0;
  if (evaluation_plan_ == nullptr || evaluation_soft_classes_ != soft_classes) {
    const PlanOptions options{
        .block = cpu_block_samples(setup_.model, data.sample_shape(), kEvaluationChunk),
        .training = false,
        .seed = setup_.seed,
        .soft_classes = soft_classes};
    evaluation_plan_ =
        std::make_unique<Plan>(context_, setup_.model, setup_.layout, data.sample_shape(), options,
                               params_.data(), nullptr);
    evaluation_soft_classes_ = soft_classes;
  }
  Plan& plan = *evaluation_plan_;
  const DeviceSamples samples = stage(data);
  const EpochTables tables{.samples = data.size(), .batch_size = kEvaluationChunk};
  StepState& state = device_state()->evaluation;
  const std::int64_t chunks = (data.size() + kEvaluationChunk - 1) / kEvaluationChunk;
  for (std::int64_t chunk = rank; chunk < chunks; chunk += size) {
    state.step_in_epoch = static_cast<std::uint32_t>(chunk);
    open_step(context_, tables, nullptr, &state);
    ChunkSums total;
    for (std::int64_t place = 0; place < state.real_samples; place += plan.block()) {
      gather(context_, samples, tables, &state, place, kEvaluationChunk, plan.input());
      plan.forward(context_, &state);
      plan.loss(context_, &state);
      for (std::int64_t i = 0; i < plan.block(); ++i) {
        total.loss += static_cast<double>(plan.losses()[i]);
        total.correct += plan.correct()[i] > 0 ? 1 : 0;
      }
    }
    sums.push_back(total);
    chunk_done();
  }
}

TrainingState Replica::export_state() const {
  TrainingState state;
  state.params.assign(params_.data(), params_.data() + params_.size());
  for (const Arena& moment : moments_) {
    state.moments.emplace_back(moment.data(), moment.data() + moment.size());
  }
  state.step = device_state()->step;
  state.sums = device_state()->sums;
  return state;
}

std::string Replica::first_nonfinite_gradient() const {
  const std::vector<Parameter>& parameters = setup_.layout.parameters();
  const auto finite = [](float value) { return std::isfinite(value); };
  for (auto parameter = parameters.rbegin(); parameter != parameters.rend(); ++parameter) {
    const float* values = grads_.at(parameter->place);
    if (!std::all_of(values, values + parameter->place.count, finite)) return parameter->name;
  }
  return {};
}

}  // namespace lockstep
