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

/// Follows one block through time: unit i runs forward at time i, the loss at time L, unit i
/// backward at 2L - i.
class Planner {
 public:
  Planner(const Sequential& model, bool training, Blueprint& blueprint)
      : model_(model), training_(training), blueprint_(blueprint), memory_(blueprint.memory) {}

  void run(const std::vector<Unit>& units, const Shape& input_sample) {
    const std::vector<Shape> shapes = model_.shapes(input_sample);
    for (const Unit& unit : units) {
      const Shape& x =
          unit.first == 0 ? input_sample : shapes[static_cast<std::size_t>(unit.first - 1)];
      const Shape& y = shapes[static_cast<std::size_t>(unit.last)];
      blueprint_.layers.push_back({.unit = unit,
                                   .x_shape = x.with_first(blueprint_.block),
                                   .y_shape = y.with_first(blueprint_.block)});
    }
    blueprint_.first_backward = training_ ? lowest_with_parameters() : size();
    plan_activations();
    plan_gradients();
    memory_.place();
  }

 private:
  [[nodiscard]] PlannedLayer& at(int i) { return blueprint_.layers[static_cast<std::size_t>(i)]; }
  [[nodiscard]] int size() const { return static_cast<int>(blueprint_.layers.size()); }
  [[nodiscard]] int loss_time() const { return size(); }
  [[nodiscard]] int backward_time(int i) const { return 2 * size() - i; }
  [[nodiscard]] bool has_backward(int i) const { return i >= blueprint_.first_backward; }
  [[nodiscard]] LayerTraits traits(int i) { return unit_traits(model_, at(i).unit); }

  [[nodiscard]] int lowest_with_parameters() {
    for (int i = 0; i < size(); ++i) {
      const int layer = at(i).unit.first;
      const auto specs =
          naming_layer(model_.name(layer), [&] { return model_.layer(layer).parameters(); });
      if (!specs.empty()) return i;
    }
    return size();
  }

  void plan_activations() {
    constexpr int kGatherTime = -1;
    int x = memory_.add(float_bytes(at(0).x_shape), kGatherTime);
    // Whether the values in x must stay as they are: the input is the caller's, the others when a
    // backward pass reads them.
    bool x_is_kept = true;
    for (int i = 0; i < size(); ++i) {
      PlannedLayer& layer = at(i);
      const LayerTraits its = traits(i);
      layer.x = x;
      layer.y = output_place(i, its, x_is_kept);
      memory_.use(layer.x, i);
      memory_.use(layer.y, i);
      if (has_backward(i)) {
        if (its.backward_reads_x) memory_.use(layer.x, backward_time(i));
        if (its.backward_reads_y) memory_.use(layer.y, backward_time(i));
      }
      if (const std::size_t bytes = training_ ? saved_bytes(i) : 0; bytes > 0) {
        layer.saved = memory_.add(bytes, i);
        if (has_backward(i)) memory_.use(layer.saved, backward_time(i));
      }
      const bool reads_y = has_backward(i) && its.backward_reads_y;
      x_is_kept = reads_y || (layer.y == x && x_is_kept && its.output == LayerTraits::Output::is_x);
      x = layer.y;
    }
    memory_.use(x, loss_time());
  }

  int output_place(int i, const LayerTraits& its, bool x_is_kept) {
    const PlannedLayer& layer = at(i);
    const bool same_count = layer.x_shape.count() == layer.y_shape.count();
    if (its.output == LayerTraits::Output::is_x) {
      if (same_count) return layer.x;
      throw ShapeError(message(unit_name(model_, layer.unit), ": kTraits says that y is x, but ",
                               layer.x_shape, " becomes ", layer.y_shape,
                               "; both need as many elements"));
    }
    const bool reads_x = has_backward(i) && its.backward_reads_x;
    const bool in_place =
        its.output == LayerTraits::Output::may_overwrite_x && same_count && !x_is_kept && !reads_x;
    return in_place ? layer.x : memory_.add(float_bytes(layer.y_shape), i);
  }

  std::size_t saved_bytes(int i) {
    const PlannedLayer& layer = at(i);
    return naming_layer(unit_name(model_, layer.unit), [&] {
      return unit_saved_bytes(model_, layer.unit, layer.x_shape, layer.y_shape);
    });
  }

  void plan_gradients() {
    if (!has_backward(size() - 1)) return;
    int dy = memory_.add(float_bytes(at(size() - 1).y_shape), loss_time());
    for (int i = size() - 1; has_backward(i) && i >= 0; --i) {
      PlannedLayer& layer = at(i);
      layer.dy = dy;
      memory_.use(dy, backward_time(i));
      if (i == 0 || !has_backward(i - 1)) return;
      const bool shares = traits(i).output != LayerTraits::Output::own &&
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

std::int64_t parameter_bytes(const Sequential& model) {
  std::int64_t bytes = 0;
  for (int i = 0; i < model.size(); ++i) {
    for (const ParameterSpec& spec : model.layer(i).parameters()) {
      bytes += spec.shape.count() * std::int64_t{sizeof(float)};
    }
  }
  return bytes;
}

}  // namespace

Blueprint make_blueprint(const Sequential& model, const std::vector<Unit>& units,
                         const Shape& input_sample, std::int64_t block, BlockForm form,
                         bool training) {
  if (block < 1) throw UsageError(message("plan: a block of ", block, " samples; want 1 or more"));
  Blueprint blueprint;
  blueprint.block = round_up(block, form.group);
  blueprint.layout = form.layout;
  Planner(model, training, blueprint).run(units, input_sample);
  return blueprint;
}

std::int64_t block_samples(const Context& context, const Sequential& model,
                           const Shape& input_sample, std::int64_t shard_samples, bool fuse) {
  if (!context.on_cpu()) return shard_samples;
  constexpr std::int64_t kBudgetBytes = std::int64_t{512} << 10;
  constexpr std::int64_t kLargeGroups = 4;
  const BlockForm form = block_form(DeviceKind::cpu);
  const std::vector<Unit> units =
      fuse ? fused_units(context, model, input_sample, form.group) : single_units(model);
  const Blueprint group = make_blueprint(model, units, input_sample, form.group, form, true);
  const auto group_bytes =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(group.memory.size()));
  const bool large_weights = parameter_bytes(model) > kBudgetBytes;
  const std::int64_t fitting = kBudgetBytes / group_bytes;
  const std::int64_t groups = std::max(fitting, large_weights ? kLargeGroups : std::int64_t{1});
  const std::int64_t shard = round_up(std::max<std::int64_t>(1, shard_samples), form.group);
  return std::min(groups * form.group, shard);
}

}  // namespace lockstep
