// A Trainer's checkpoints: what it hands out when, and how it goes on from one.
#include <algorithm>
#include <limits>
#include <map>

#include "lockstep/config.h"
#include "lockstep/core/error.h"
#include "lockstep/core/joined.h"
#include "lockstep/core/unheard.h"
#include "lockstep/layers/plan.h"
#include "lockstep/parallel/trainer_impl.h"

namespace lockstep {

namespace {

/// The tensors of an arena in the order of the layers; `suffixes` one for each arena.
std::vector<NamedTensor> tensors_of(const ParameterLayout& layout,
                                    const std::vector<std::vector<float>>& arenas,
                                    const std::vector<std::string>& suffixes) {
  std::vector<NamedTensor> tensors;
  for (const Parameter& parameter : layout.parameters()) {
    for (std::size_t i = 0; i < arenas.size(); ++i) {
      const auto first = arenas[i].begin() + parameter.place.offset;
      tensors.push_back({parameter.name + suffixes[i],
                         Tensor(parameter.spec.shape, {first, first + parameter.place.count})});
    }
  }
  return tensors;
}

/// The way back. Every tensor of the layout is there exactly once and in its shape, and no other.
std::vector<std::vector<float>> arenas_of(const ParameterLayout& layout,
                                          const std::vector<NamedTensor>& tensors,
                                          const std::vector<std::string>& suffixes) {
  std::map<std::string, const Tensor*> by_name;
  for (const NamedTensor& tensor : tensors) {
    if (!by_name.emplace(tensor.name, &tensor.values).second) {
      throw UsageError(message("restore: the checkpoint has the tensor '", tensor.name, "' twice"));
    }
  }
  std::vector<std::vector<float>> arenas(
      suffixes.size(), std::vector<float>(static_cast<std::size_t>(layout.size())));
  for (const Parameter& parameter : layout.parameters()) {
    for (std::size_t i = 0; i < suffixes.size(); ++i) {
      const std::string name = parameter.name + suffixes[i];
      const auto found = by_name.find(name);
      if (found == by_name.end()) {
        throw UsageError(message("restore: the checkpoint has no tensor '", name, "'"));
      }
      const Tensor& tensor = *found->second;
      if (tensor.shape() != parameter.spec.shape) {
        throw UsageError(message("restore: tensor '", name, "' of the checkpoint is ",
                                 tensor.shape(), ", the model's is ", parameter.spec.shape));
      }
      std::copy(tensor.values().begin(), tensor.values().end(),
                arenas[i].begin() + parameter.place.offset);
      by_name.erase(found);
    }
  }
  if (!by_name.empty()) {
    throw UsageError(message("restore: the checkpoint's tensor '", by_name.begin()->first,
                             "' is none of the model and its optimizer"));
  }
  return arenas;
}

std::vector<std::string> moment_suffixes(const Optimizer& optimizer) {
  std::vector<std::string> suffixes = optimizer.moment_names();
  for (std::string& suffix : suffixes) suffix.insert(0, 1, '.');
  return suffixes;
}

void require_same(const TrainingRecipe& before, const TrainingRecipe& now, const char* where) {
  const std::vector<std::string> clauses = differences(before, now);
  if (clauses.empty()) return;
  throw UsageError(message(where,
                           ": this is not the training of the checkpoint: ", joined(clauses, "; "),
                           ". To train on in another way start from the checkpoint's weights"));
}

}  // namespace

TrainingExecution execution_of(const Devices& devices, const Sharding& sharding,
                               const Sequential& model, const Shape& input_sample, bool fuse) {
  const Device device = devices.list.front();
  const bool cpu = device.kind == DeviceKind::cpu;
  return {.version = kVersion,
          .backend = cpu ? "cpu" : "cuda",
          .processor = cpu ? std::string(name_of(preferred_cpu_set())) : device_info(device).name,
          .replicas = sharding.replicas,
          .shards = sharding.shards,
          .shard_samples = sharding.shard_samples,
          .block_samples = cpu ? block_samples(Context(device), model, input_sample,
                                               sharding.shard_samples, fuse)
                               : sharding.shard_samples};
}

TrainingRecipe Trainer::Impl::own_recipe() const {
  TrainingRecipe recipe;
  recipe.optimizer = optimizer.describe();
  recipe.schedule = options.schedule.describe();
  recipe.seed = options.seed;
  recipe.reduce = options.reduce == Reduce::fast ? "fast" : "invariant";
  recipe.bucket_bytes = options.bucket_bytes;
  recipe.l2 = options.l2;
  recipe.clip_norm = options.clip_norm;
  recipe.precision = options.precision == Precision::fp32 ? "fp32" : "tf32";
  recipe.fuse = options.fuse;
  for (int i = 0; i < model.size(); ++i) {
    recipe.model.push_back(model.name(i) + ": " + model.layer(i).summary());
  }
  return recipe;
}

TrainingRecipe Trainer::Impl::recipe(Batches& of) const {
  if (of.data_sha256.empty()) of.data_sha256 = of.train.sha256();
  TrainingRecipe recipe = own_recipe();
  recipe.schedule_epochs = options.schedule.has_end() ? of.total_epochs : 0;
  recipe.batch_size = of.sharding.batch_size;
  recipe.last_batch = of.last_batch == LastBatch::keep ? "keep" : "drop";
  recipe.data = of.train.name();
  recipe.samples = of.train.size();
  recipe.data_sha256 = of.data_sha256;
  return recipe;
}

Checkpoint Trainer::Impl::checkpoint() {
  require_idle();
  require_begun();
  const TrainingState reached = export_state();
  Checkpoint checkpoint;
  checkpoint.recipe = recipe(*batches);
  if (!batches->execution) {
    batches->execution = execution_of(world.devices(), batches->sharding, model,
                                      batches->train.sample_shape(), options.fuse);
  }
  checkpoint.execution = *batches->execution;
  checkpoint.step.step = reached.step.step;
  checkpoint.step.epoch = reached.step.epoch;
  checkpoint.step.step_in_epoch = reached.step.step_in_epoch;
  checkpoint.sums = reached.sums;
  checkpoint.sums.stop = 0;
  checkpoint.train_seconds = train_seconds;
  checkpoint.fit = fit;
  checkpoint.weights = tensors_of(layout, {reached.params}, {""});
  checkpoint.moments = tensors_of(layout, reached.moments, moment_suffixes(optimizer));
  if (!best_params.empty()) checkpoint.best_weights = tensors_of(layout, {best_params}, {""});
  return checkpoint;
}

void Trainer::Impl::restore(const Checkpoint& from) {
  require_idle();
  TrainingRecipe now = own_recipe();
  // What begin sets up is compared there.
  now.schedule_epochs = from.recipe.schedule_epochs;
  now.batch_size = from.recipe.batch_size;
  now.last_batch = from.recipe.last_batch;
  now.samples = from.recipe.samples;
  now.data_sha256 = from.recipe.data_sha256;
  require_same(from.recipe, now, "restore");
  TrainingState state;
  state.params = std::move(arenas_of(layout, from.weights, {""}).front());
  state.moments = arenas_of(layout, from.moments, moment_suffixes(optimizer));
  state.step = from.step;
  state.sums = from.sums;
  std::vector<float> best;
  if (!from.best_weights.empty()) {
    best = std::move(arenas_of(layout, from.best_weights, {""}).front());
  }
  replicas.clear();
  batches.reset();
  epoch_open = false;
  apart = false;
  start = std::move(state);
  best_params = std::move(best);
  train_seconds = from.train_seconds;
  fit = from.fit;
  restored = Restored{from.recipe, from.execution};
}

void Trainer::Impl::check_same(Batches& now) const {
  require_same(restored->recipe, recipe(now), "begin");
}

void Trainer::Impl::hand_out() {
  if (on_checkpoint) on_checkpoint(checkpoint());
  handed_out = TrainerClock::now();
  handed_out_step = state().step;
}

void Trainer::Impl::hand_out_if_due() {
  const std::int64_t every = checkpoint_times.every_steps;
  const bool by_steps = every > 0 && state().step != handed_out_step &&
                        state().step % static_cast<std::uint64_t>(every) == 0;
  if (by_steps || due_by_time()) hand_out();
}

/// Steps up to the next one that a checkpoint follows by its number.
std::int64_t Trainer::Impl::steps_to_checkpoint() const {
  const std::int64_t every = checkpoint_times.every_steps;
  if (!on_checkpoint || every <= 0) return std::numeric_limits<std::int64_t>::max();
  return every - static_cast<std::int64_t>(state().step % static_cast<std::uint64_t>(every));
}

bool Trainer::Impl::due_by_time() const {
  return on_checkpoint && checkpoint_times.every_seconds > 0 &&
         seconds_since(handed_out) >= checkpoint_times.every_seconds;
}

void Trainer::on_checkpoint(std::function<void(Checkpoint)> callback,
                            const CheckpointTimes& times) {
  if (times.every_steps < 0 || !(times.every_seconds >= 0)) {
    throw UsageError(message("trainer: a checkpoint every ", times.every_steps, " steps and ",
                             times.every_seconds, " seconds; want numbers from 0 (never) up"));
  }
  impl_->on_checkpoint = std::move(callback);
  impl_->checkpoint_times = times;
}

Checkpoint Trainer::checkpoint() const {
  const LoggedErrors unheard(impl_->world.log(), "trainer");
  return impl_->checkpoint();
}

void Trainer::restore(const Checkpoint& checkpoint) {
  const LoggedErrors unheard(impl_->world.log(), "trainer");
  impl_->restore(checkpoint);
}

}  // namespace lockstep
