#include "lockstep/layers/plan.h"

#include "lockstep/core/error.h"
#include "lockstep/core/stream.h"
#include "lockstep/kernels/fused.h"
#include "lockstep/kernels/softmax_cross_entropy.h"
#include "lockstep/layers/name_errors.h"
#include "lockstep/layers/planner.h"
#include "lockstep/layers/text_table.h"

namespace lockstep {

namespace {

void check_arguments(const Sequential& model, const ParameterLayout& layout,
                     const PlanOptions& options, const float* params, const float* grads) {
  std::size_t number = 0;
  for (int i = 0; i < model.size(); ++i) {
    const auto specs = naming_layer(model.name(i), [&] { return model.layer(i).parameters(); });
    for (const ParameterSpec& spec : specs) {
      const Parameter* there =
          number < layout.parameters().size() ? &layout.parameters()[number] : nullptr;
      if (there == nullptr || there->name != model.name(i) + "." + spec.name ||
          there->spec.shape != spec.shape) {
        throw UsageError(message(model.name(i), ": the layout has no place for ", spec.name, " ",
                                 spec.shape, "; make it from the same model as the plan"));
      }
      ++number;
    }
  }
  if (number != layout.parameters().size()) {
    throw UsageError("plan: the layout is of another model, with more parameters");
  }
  if (number > 0 && (params == nullptr || (options.training && grads == nullptr))) {
    throw UsageError(message("plan: no arena of ", params == nullptr ? "parameters" : "gradients"));
  }
}

void check_logits(const Sequential& model, const Shape& output, std::int64_t soft_classes) {
  const std::string& last = model.name(model.size() - 1);
  if (output.rank() != 1 || output.count() < 1) {
    throw ShapeError(message(last, ": the model's output is ", output,
                             " a sample, want one row of logits; end with Flatten or Linear"));
  }
  if (soft_classes != 0 && soft_classes != output[0]) {
    throw ShapeError(message(last, ": the model's output has ", output[0],
                             " classes, but the targets have ", soft_classes));
  }
}

/// Hands out the places of a blueprint as views.
class Places {
 public:
  Places(const Blueprint& blueprint, const Buffer& memory)
      : blueprint_(blueprint), memory_(memory) {}
  [[nodiscard]] FloatView floats(int value, const Shape& shape) const {
    if (value < 0) return {nullptr, shape, blueprint_.layout};
    return {reinterpret_cast<float*>(bytes(value)), shape, blueprint_.layout};
  }
  [[nodiscard]] std::uint8_t* bytes(int value) const {
    if (value < 0) return nullptr;
    return reinterpret_cast<std::uint8_t*>(memory_.data()) + blueprint_.memory.offset(value);
  }

 private:
  const Blueprint& blueprint_;
  const Buffer& memory_;
};

std::string description_of(const Sequential& model, const Blueprint& blueprint,
                           std::size_t workspace) {
  const MemoryMap& memory = blueprint.memory;
  std::vector<std::vector<std::string>> rows{
      {"name", "layer", "output", "layout", "bytes", "saved"}};
  for (const PlannedLayer& layer : blueprint.layers) {
    rows.push_back({unit_name(model, layer.unit), unit_summary(model, layer.unit),
                    layer.y_shape.to_string(), name_of(blueprint.layout),
                    layer.y == layer.x ? "in place" : std::to_string(memory.bytes(layer.y)),
                    layer.saved < 0 ? "" : std::to_string(memory.bytes(layer.saved))});
  }
  return text_table(rows, 4) + message("block of ", blueprint.block, " samples: ", memory.size(),
                                       " bytes of activations and their gradients, ", workspace,
                                       " bytes of workspace\n");
}

std::vector<Unit> units_for(const Context& context, const Sequential& model,
                            const Shape& input_sample, const PlanOptions& options) {
  return options.fuse ? fused_units(context, model, input_sample, options.block)
                      : single_units(model);
}

}  // namespace

bool plan_can_span_shards(const Context& context, const Sequential& model,
                          const Shape& input_sample, const PlanOptions& options) {
  return !context.on_cpu() && options.shards <= kFusedShards &&
         can_span_shards(model, units_for(context, model, input_sample, options));
}

Plan::Plan(Context& context, const Sequential& model, const ParameterLayout& layout,
           const Shape& input_sample, const PlanOptions& options, const float* params, float* grads)
    : training_(options.training) {
  check_arguments(model, layout, options, params, grads);
  const std::vector<Unit> units = units_for(context, model, input_sample, options);
  if (options.shards > 1 && !can_span_shards(model, units)) {
    throw UsageError("plan: this model's layers cannot keep shards apart; plan one shard");
  }
  const Blueprint blueprint = make_blueprint(model, units, input_sample, options.block,
                                             block_form(context.device().kind), options.training);
  const Shape& output = blueprint.layers.back().y_shape;
  check_logits(model, output.without_first(), options.soft_classes);
  block_ = blueprint.block;
  first_backward_ = blueprint.first_backward;
  allocate(context, blueprint, output, options.soft_classes);

  const Places places(blueprint, memory_);
  unit_at_.assign(static_cast<std::size_t>(model.size()), -1);
  for (const PlannedLayer& planned : blueprint.layers) {
    const int layer = planned.unit.first;
    Binding binding{.name = model.name(layer),
                    .number = static_cast<std::uint32_t>(layer),
                    .seed = options.seed,
                    .x = places.floats(planned.x, planned.x_shape),
                    .y = places.floats(planned.y, planned.y_shape),
                    .dx = places.floats(planned.dx, planned.x_shape),
                    .dy = places.floats(planned.dy, planned.y_shape),
                    .parameters = {},
                    .shards = options.shards,
                    .grads_stride = layout.gradient_size(),
                    .saved = places.bytes(planned.saved)};
    for (const Parameter& parameter : layout.of_layer(layer)) {
      float* grad = training_ ? grads + parameter.place.offset : nullptr;
      binding.parameters.push_back(
          {{params + parameter.place.offset, parameter.spec.shape}, {grad, parameter.spec.shape}});
    }
    if (planned.unit.kind == Unit::Kind::linear_loss) {
      const bool biased = binding.parameters.size() > 1;
      linear_ = {.x = binding.x,
                 .w = binding.parameters.at(0).value,
                 .b = biased ? binding.parameters[1].value : ConstFloatView{}};
    }
    unit_at_[static_cast<std::size_t>(layer)] = static_cast<int>(units_.size());
    names_.push_back(unit_name(model, planned.unit));
    outputs_.push_back(binding.y);
    naming_layer(names_.back(), [&] {
      context.reserve_workspace(unit_workspace_bytes(context, model, planned.unit, planned.x_shape,
                                                     options.shards, training_));
      units_.push_back(bind_unit(model, planned.unit, binding));
    });
  }
  input_.x = places.floats(blueprint.layers.front().x, blueprint.layers.front().x_shape);
  logits_ = places.floats(blueprint.layers.back().y, output);
  dlogits_ = places.floats(blueprint.layers.back().dy, output);
  description_ = description_of(model, blueprint, context.workspace_bytes());
}

void Plan::allocate(Context& context, const Blueprint& blueprint, const Shape& output,
                    std::int64_t soft_classes) {
  const Device device = context.device();
  const auto samples = static_cast<std::size_t>(block_);
  const auto row = static_cast<std::size_t>(round_up(block_, kAlignedFloats));
  memory_ = Buffer(device, blueprint.memory.size(), "the activations");
  losses_ = Buffer(device, samples * sizeof(float), "the losses");
  correct_ = Buffer(device, samples * sizeof(float), "the counts of right predictions");
  // Sample numbers, and behind them a class or a row of soft targets for each.
  const std::size_t target =
      soft_classes == 0 ? sizeof(std::int32_t)
                        : static_cast<std::size_t>(output.without_first().count()) * sizeof(float);
  targets_ = Buffer(device, row * sizeof(std::int32_t) + samples * target, "the targets");
  input_.sample_index = targets_.as<std::int32_t>();
  if (soft_classes == 0) {
    input_.classes = targets_.as<std::int32_t>() + row;
  } else {
    input_.soft = targets_.as<float>() + row;
  }
}

Pass Plan::pass(const StepState* state) const {
  return {.state = state, .sample_index = input_.sample_index, .training = training_};
}

void Plan::forward(Context& context, const StepState* state) {
  const Pass block = pass(state);
  for (std::size_t i = 0; i < units_.size(); ++i) {
    const Range range(context, names_[i].c_str());
    naming_layer(names_[i], [&] { units_[i]->forward(context, block); });
  }
}

void Plan::loss(Context& context, const StepState* state) {
  const Range range(context, "loss");
  const Targets targets{
      .sample_index = input_.sample_index, .classes = input_.classes, .soft = input_.soft};
  if (linear_) {
    linear_loss(context, linear_->x, linear_->w, linear_->b, targets, state, logits_,
                losses_.as<float>(), correct_.as<float>(), dlogits_);
  } else {
    softmax_cross_entropy(context, logits_, targets, state, losses_.as<float>(),
                          correct_.as<float>(), dlogits_);
  }
}

void Plan::backward(Context& context, const StepState* state, int layer, bool first_block) {
  if (!training_) {
    throw UsageError("plan: a backward pass in a forward plan; make one with .training = true");
  }
  if (layer < 0 || layer >= layers()) {
    throw UsageError(message("plan: backward of layer ", layer, "; want 0 to ", layers() - 1));
  }
  const int unit = unit_at_[static_cast<std::size_t>(layer)];
  if (unit < first_backward_) return;
  const auto index = static_cast<std::size_t>(unit);
  const Range range(context, names_[index].c_str());
  naming_layer(names_[index], [&] { units_[index]->backward(context, pass(state), first_block); });
}

}  // namespace lockstep
