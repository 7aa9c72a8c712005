#include "lockstep/layers/fusion.h"

#include <algorithm>

#include "lockstep/kernels/fused.h"

namespace lockstep {

namespace {

class ConvPoolLayer final : public Layer {
 public:
  ConvPoolLayer(const Window& conv, const Window& pool, bool relu, const Binding& binding)
      : conv_(conv),
        pool_(pool),
        relu_(relu),
        tensors_(binding),
        weight_(binding.parameters.at(0)),
        argmax_(binding.saved, binding.y.shape, binding.y.layout) {
    if (binding.parameters.size() > 1) bias_ = binding.parameters[1];
  }

  void forward(Context& context, const Pass&) override {
    conv_pool_forward(context, conv_, pool_, relu_, tensors_.x, weight_.value, bias_.value,
                      tensors_.y, argmax_);
  }

  void backward(Context& context, const Pass&, bool first_block) override {
    conv_pool_backward(context, conv_, pool_, relu_, tensors_.x, weight_.value, tensors_.y, argmax_,
                       tensors_.dy, weight_.grad, bias_.grad, !first_block, tensors_.dx,
                       tensors_.shards, tensors_.grads_stride);
  }

 private:
  Window conv_;
  Window pool_;
  bool relu_;
  Binding tensors_;
  BoundParameter weight_;
  BoundParameter bias_;  // null data without a bias
  View<std::uint8_t> argmax_;
};

/// The forward pass is the plan's, together with the loss.
class LinearBeforeLossLayer final : public Layer {
 public:
  explicit LinearBeforeLossLayer(const Binding& binding)
      : tensors_(binding), weight_(binding.parameters.at(0)) {
    if (binding.parameters.size() > 1) bias_ = binding.parameters[1];
  }

  void forward(Context&, const Pass&) override {}

  void backward(Context& context, const Pass&, bool first_block) override {
    linear_backward(context, tensors_.x, weight_.value, tensors_.dy, weight_.grad, bias_.grad,
                    !first_block, tensors_.dx, tensors_.shards, tensors_.grads_stride);
  }

 private:
  Binding tensors_;
  BoundParameter weight_;
  BoundParameter bias_;
};

const Conv2d& conv_of(const Sequential& model, const Unit& unit) {
  return *model.layer(unit.first).get_if<Conv2d>();
}

struct ConvPoolWindows {
  Window conv, pool;
};

ConvPoolWindows windows_of(const Sequential& model, const Unit& unit, const Shape& sample) {
  const Conv2d& conv = conv_of(model, unit);
  return {conv.window(sample),
          model.layer(unit.last).get_if<MaxPool2d>()->window(conv.output_shape(sample))};
}

Shape weight_shape(const Conv2d& conv) {
  return {conv.out, conv.in, conv.kernel.h, conv.kernel.w};
}

/// The layer behind a ReLU at `index`, if there is one, else the layer there; -1 at the end.
int behind_relu(const Sequential& model, int index) {
  if (index < model.size() && model.layer(index).get_if<ReLU>() != nullptr) ++index;
  return index < model.size() ? index : -1;
}

}  // namespace

std::vector<Unit> single_units(const Sequential& model) {
  std::vector<Unit> units;
  for (int i = 0; i < model.size(); ++i) units.push_back({.first = i, .last = i});
  return units;
}

std::vector<Unit> fused_units(const Context& context, const Sequential& model,
                              const Shape& input_sample, std::int64_t block) {
  const std::vector<Shape> shapes = model.shapes(input_sample);
  const auto shape_before = [&](int i) {
    return i == 0 ? input_sample : shapes[static_cast<std::size_t>(i - 1)];
  };
  std::vector<Unit> units;
  for (int i = 0; i < model.size();) {
    Unit unit{.first = i, .last = i};
    if (const Conv2d* conv = model.layer(i).get_if<Conv2d>()) {
      const int next = behind_relu(model, i + 1);
      const MaxPool2d* pool = next < 0 ? nullptr : model.layer(next).get_if<MaxPool2d>();
      if (pool != nullptr &&
          conv_pool_is_fused(context, conv->window(shape_before(i)),
                             pool->window(shape_before(next)), shape_before(i).with_first(block),
                             weight_shape(*conv))) {
        unit = {.first = i, .last = next, .kind = Unit::Kind::conv_pool};
      }
    } else if (const Linear* linear = model.layer(i).get_if<Linear>()) {
      if (!context.on_cpu() && i + 1 == model.size() && linear->out <= kFusedLinearOutputs &&
          linear->in <= kFusedLinearInputs) {
        unit.kind = Unit::Kind::linear_loss;
      }
    }
    units.push_back(unit);
    i = unit.last + 1;
  }
  return units;
}

bool can_span_shards(const Sequential& model, const std::vector<Unit>& units) {
  return std::all_of(units.begin(), units.end(), [&](const Unit& unit) {
    if (unit.kind != Unit::Kind::single) return true;
    const AnyLayer& layer = model.layer(unit.first);
    return layer.get_if<ReLU>() != nullptr || layer.get_if<MaxPool2d>() != nullptr ||
           layer.get_if<Flatten>() != nullptr || layer.get_if<Dropout>() != nullptr;
  });
}

LayerTraits unit_traits(const Sequential& model, const Unit& unit) {
  if (unit.kind == Unit::Kind::conv_pool) return {};
  return model.layer(unit.first).traits();
}

std::size_t unit_saved_bytes(const Sequential& model, const Unit& unit, const Shape& x,
                             const Shape& y) {
  // A byte for every window: where its largest value was.
  if (unit.kind == Unit::Kind::conv_pool) return static_cast<std::size_t>(y.count());
  return model.layer(unit.first).saved_bytes(x, y);
}

std::size_t unit_workspace_bytes(Context& context, const Sequential& model, const Unit& unit,
                                 const Shape& x, int shards, bool training) {
  // On a GPU fused operations need some for their gradients only.
  if (unit.kind != Unit::Kind::single && !context.on_cpu() && !training) return 0;
  switch (unit.kind) {
    case Unit::Kind::conv_pool: {
      const ConvPoolWindows windows = windows_of(model, unit, x.without_first());
      return conv_pool_workspace_bytes(context, windows.conv, windows.pool, x,
                                       weight_shape(conv_of(model, unit)), shards);
    }
    case Unit::Kind::linear_loss:
      return linear_backward_workspace_bytes(x, model.layer(unit.first).get_if<Linear>()->out,
                                             shards);
    case Unit::Kind::single:
      break;
  }
  return model.layer(unit.first).workspace_bytes(context, x);
}

std::unique_ptr<Layer> bind_unit(const Sequential& model, const Unit& unit,
                                 const Binding& binding) {
  switch (unit.kind) {
    case Unit::Kind::conv_pool: {
      const ConvPoolWindows windows = windows_of(model, unit, binding.x.shape.without_first());
      return std::make_unique<ConvPoolLayer>(windows.conv, windows.pool, unit.last - unit.first > 1,
                                             binding);
    }
    case Unit::Kind::linear_loss:
      return std::make_unique<LinearBeforeLossLayer>(binding);
    case Unit::Kind::single:
      break;
  }
  return model.layer(unit.first).bind(binding);
}

std::string unit_name(const Sequential& model, const Unit& unit) {
  std::string name = model.name(unit.first);
  for (int i = unit.first + 1; i <= unit.last; ++i) name += "+" + model.name(i);
  return unit.kind == Unit::Kind::linear_loss ? name + "+loss" : name;
}

std::string unit_summary(const Sequential& model, const Unit& unit) {
  std::string summary = model.layer(unit.first).summary();
  for (int i = unit.first + 1; i <= unit.last; ++i) summary += " + " + model.layer(i).summary();
  return unit.kind == Unit::Kind::linear_loss ? summary + " + loss" : summary;
}

}  // namespace lockstep
