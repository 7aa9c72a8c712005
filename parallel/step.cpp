// The training step: open and gather, forward, loss, backward with reductions beside it, update.
#include <algorithm>

#include "lockstep/kernels/optimize.h"
#include "lockstep/kernels/reduce.h"
#include "lockstep/kernels/softmax_cross_entropy.h"
#include "lockstep/parallel/replica.h"

namespace lockstep {

/// Where the plan writes gradients.
float* Replica::plan_grads() const {
  return shards_at_once_ > 1 ? shard_grads_.data() : grads_.data();
}

StepTail* Replica::tail_of(float* grads) const {
  return reinterpret_cast<StepTail*>(grads + setup_.layout.size());
}

void Replica::step(Communicator& communicator) {
  const Range range(context_, "step");
  for (int index = 0; index < sharding_.per_replica(); index += shards_at_once_) {
    run_shards(communicator, index);
  }
  if (reduces_) communicator.finish_reductions(context_);
  update();
}

/// Gradients of shards_at_once_ of the rank's shards, from number `index` on. On a GPU they are one
/// block. On a CPU blocks without a sample are left out: they would add zeros.
void Replica::run_shards(Communicator& communicator, int index) {
  StepState* state = &device_state()->step;
  const std::int64_t shard = std::int64_t{communicator.rank()} * sharding_.per_replica() + index;
  const std::int64_t first = shard * sharding_.shard_samples;
  const std::int64_t end = first + shards_at_once_ * sharding_.shard_samples;

  // The first block always runs: it is the one that overwrites the gradients of the step before.
  std::int64_t place = first;
  std::int64_t last_sample = end;
  do {
    const bool first_block = place == first;
    if (first_block && index == 0) {
      open_and_gather(context_, feed_->samples(), tables_, setup_.stop_request, state, place, end,
                      plan_->input());
    } else {
      gather(context_, feed_->samples(), tables_, state, place, end, plan_->input());
    }
    if (context_.on_cpu()) last_sample = std::min<std::int64_t>(end, state->real_samples);
    const bool last_block = place + plan_->block() >= last_sample;
    run_forward();
    sum_losses(context_, state, plan_->losses(), plan_->correct(), plan_->block(),
               tail_of(plan_grads()), !first_block, shards_at_once_, setup_.layout.gradient_size());
    for (int layer = plan_->layers() - 1; layer >= 0; --layer) {
      plan_->backward(context_, state, layer, first_block);
      if (last_block) finish_layer(communicator, index, layer);
    }
    place += plan_->block();
  } while (place < last_sample);
}

/// Forward and loss of the gathered block.
void Replica::run_forward() {
  const StepState* state = &device_state()->step;
  if (nonfinite_ == nullptr) {
    plan_->forward(context_, state);
    plan_->loss(context_, state);
    return;
  }
  const std::string found = plan_->find_nonfinite(context_, state);
  if (nonfinite_->empty()) *nonfinite_ = found;
}

/// Hands on the buckets that the backward pass of `layer` completed: to the sum over the rank's
/// shards, a tree over their numbers, and after the last shard to the other replicas.
void Replica::finish_layer(Communicator& communicator, int index, int layer) {
  for (const Bucket& bucket : buckets_) {
    if (bucket.ready_after != layer) continue;
    float* grads = grads_.data() + bucket.first;
    if (shards_at_once_ > 1) {
      sum_tree(context_, shard_grads_.data() + bucket.first, shards_at_once_,
               setup_.layout.gradient_size(), bucket.count, grads);
    } else {
      tree_->add(context_, index, bucket.first, bucket.count, grads);
    }
    if (reduces_ && index + shards_at_once_ == sharding_.per_replica()) {
      communicator.all_reduce(context_, grads, bucket.count, setup_.reduce == Reduce::invariant);
    }
  }
}

/// Everything behind the reduction, the same on all replicas.
void Replica::update() {
  const Range range(context_, "update");
  DeviceState* state = device_state();
  const std::int64_t size = setup_.layout.size();
  double* l2 = nullptr;
  if (l2_factor_.size() > 0) {
    l2 = &state->l2_term;
    l2_term(context_, l2_factor_.data(), params_.data(), size, scratch_.as<double>(), l2);
    add_l2_gradient(context_, l2_factor_.data(), params_.data(), grads_.data(), size);
  }
  measure_gradient(context_, grads_.data(), size, setup_.clip_norm, scratch_.as<double>(),
                   &state->step, abandoned_address_);
  setup_.optimizer.update(context_, &state->step, grads_.data(), decay_mask_.data(), params_.data(),
                          moment_pointers_.data(), size);
  close_step(context_, tail_of(grads_.data()), l2, &state->step, &state->sums);
}

}  // namespace lockstep
