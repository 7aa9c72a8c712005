#include "lockstep/layers/planner.h"

#include <algorithm>

#include "lockstep/core/buffer.h"
#include "lockstep/core/error.h"
#include "lockstep/layers/name_errors.h"
#include "lockstep/layers/plan.h"

namespace lockstep {

BlockForm block_form(DeviceKind kind) {
  if (kind == DeviceKind::cpu) return {.layout = Layout::n16, .group = kN16};
  return {.layout = Layout::canonical, .group = 1};
}

namespace {

std::size_t float_bytes(const Shape& shape) {
  return static_cast<std::size_t>(shape.count()) * sizeof(float);
}

int lowest_with_parameters(const Sequential& model) {
  for (int i = 0; i < model.size(); ++i) {
    if (!naming_layer(model.name(i), [&] { return model.layer(i).parameters(); }).empty()) return i;
  }
  return model.size();
}

/// Follows one block through time: layer i runs forward at time i, the loss at time L, layer i
/// backward at 2L - i.
class Planner {
 public:
  Planner(const Sequential& model, bool training, Blueprint& blueprint)
      : model_(model), training_(training), blueprint_(blueprint), memory_(blueprint.memory) {}

  void run(const Shape& input_sample) {
    const std::vector<Shape> shapes = model_.shapes(input_sample);
    blueprint_.layers.resize(shapes.size());
    for (int i = 0; i < model_.size(); ++i) {
      PlannedLayer& layer = at(i);
      const Shape& x = i == 0 ? input_sample : shapes[static_cast<std::size_t>(i - 1)];
      layer.x_shape = x.with_first(blueprint_.block);
      layer.y_shape = shapes[static_cast<std::size_t>(i)].with_first(blueprint_.block);
    }
    blueprint_.first_backward = training_ ? lowest_with_parameters(model_) : model_.size();
    plan_activations();
    plan_gradients();
    memory_.place();
  }

 private:
  [[nodiscard]] PlannedLayer& at(int i) { return blueprint_.layers[static_cast<std::size_t>(i)]; }
  [[nodiscard]] int loss_time() const { return model_.size(); }
  [[nodiscard]] int backward_time(int i) const { return 2 * model_.size() - i; }
  [[nodiscard]] bool has_backward(int i) const { return i >= blueprint_.first_backward; }

  void plan_activations() {
    constexpr int kGatherTime = -1;
    int x = memory_.add(float_bytes(at(0).x_shape), kGatherTime);
    // Whether the values in x must stay as they are: the input is the caller's, the others when a
    // backward pass reads them.
    bool x_is_kept = true;
    for (int i = 0; i < model_.size(); ++i) {
      PlannedLayer& layer = at(i);
      const LayerTraits traits = model_.layer(i).traits();
      layer.x = x;
      layer.y = output_place(i, traits, x_is_kept);
      memory_.use(layer.x, i);
      memory_.use(layer.y, i);
      if (has_backward(i)) {
        if (traits.backward_reads_x) memory_.use(layer.x, backward_time(i));
        if (traits.backward_reads_y) memory_.use(layer.y, backward_time(i));
      }
      if (const std::size_t bytes = training_ ? saved_bytes(i) : 0; bytes > 0) {
        layer.saved = memory_.add(bytes, i);
        if (has_backward(i)) memory_.use(layer.saved, backward_time(i));
      }
      const bool reads_y = has_backward(i) && traits.backward_reads_y;
      x_is_kept =
          reads_y || (layer.y == x && x_is_kept && traits.output == LayerTraits::Output::is_x);
      x = layer.y;
    }
    memory_.use(x, loss_time());
  }

  int output_place(int i, const LayerTraits& traits, bool x_is_kept) {
    const PlannedLayer& layer = at(i);
    const bool same_count = layer.x_shape.count() == layer.y_shape.count();
    if (traits.output == LayerTraits::Output::is_x) {
      if (same_count) return layer.x;
      throw ShapeError(message(model_.name(i), ": kTraits says that y is x, but ", layer.x_shape,
                               " becomes ", layer.y_shape, "; both need as many elements"));
    }
    const bool reads_x = has_backward(i) && traits.backward_reads_x;
    const bool in_place = traits.output == LayerTraits::Output::may_overwrite_x && same_count &&
                          !x_is_kept && !reads_x;
    return in_place ? layer.x : memory_.add(float_bytes(layer.y_shape), i);
  }

  std::size_t saved_bytes(int i) {
    return naming_layer(model_.name(i),
                        [&] { return model_.layer(i).saved_bytes(at(i).x_shape, at(i).y_shape); });
  }

  void plan_gradients() {
    if (!has_backward(model_.size() - 1)) return;
    int dy = memory_.add(float_bytes(at(model_.size() - 1).y_shape), loss_time());
    for (int i = model_.size() - 1; has_backward(i) && i >= 0; --i) {
      PlannedLayer& layer = at(i);
      layer.dy = dy;
      memory_.use(dy, backward_time(i));
      if (i == 0 || !has_backward(i - 1)) return;
      const bool shares = model_.layer(i).traits().output != LayerTraits::Output::own &&
                          layer.x_shape.count() == layer.y_shape.count();
      layer.dx = shares ? dy : memory_.add(float_bytes(layer.x_shape), backward_time(i));
      dy = layer.dx;
    }
  }

  const Sequential& model_;
  bool training_;
  Blueprint& blueprint_;
  MemoryMap& memory_;
};

}  // namespace

Blueprint make_blueprint(const Sequential& model, const Shape& input_sample, std::int64_t block,
                         BlockForm form, bool training) {
  if (block < 1) throw UsageError(message("plan: a block of ", block, " samples; want 1 or more"));
  Blueprint blueprint;
  blueprint.block = round_up(block, form.group);
  blueprint.layout = form.layout;
  Planner(model, training, blueprint).run(input_sample);
  return blueprint;
}

std::int64_t cpu_block_samples(const Sequential& model, const Shape& input_sample,
                               std::int64_t shard_samples) {
  constexpr std::int64_t kBudgetBytes = std::int64_t{512} << 10;
  const BlockForm form = block_form(DeviceKind::cpu);
  const Blueprint group = make_blueprint(model, input_sample, form.group, form, true);
  const auto group_bytes =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(group.memory.size()));
  const std::int64_t fitting = kBudgetBytes / group_bytes * form.group;
  const std::int64_t shard = round_up(std::max<std::int64_t>(1, shard_samples), form.group);
  return std::clamp(fitting, form.group, shard);
}

}  // namespace lockstep
