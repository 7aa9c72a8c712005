// A model as a list of layer descriptions.
#pragma once

#include <concepts>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/layers/descriptions.h"

namespace lockstep {

/// What a type needs to be a layer description; see ReLU for what each member means. LayerTraits
/// kTraits is optional. (Copyable comes last: asked first, clang looks for conversions of AnyLayer
/// to itself through the constructor that this concept guards, without end.)
template <class D>
concept LayerDescription = requires(const D& d, const Shape& shape, Context& context,
                                    const Binding& binding) {
  { D::kKind } -> std::convertible_to<const char*>;
  { d.name } -> std::convertible_to<std::string>;
  { d.output_shape(shape) } -> std::same_as<Shape>;
  { d.parameters() } -> std::same_as<std::vector<ParameterSpec>>;
  { d.summary() } -> std::same_as<std::string>;
  { d.saved_bytes(shape, shape) } -> std::same_as<std::size_t>;
  { d.workspace_bytes(context, shape) } -> std::same_as<std::size_t>;
  { d.bind(binding) } -> std::same_as<std::unique_ptr<Layer>>;
  requires std::copyable<D>;
};

/// Any layer description, as a value; copies share the immutable description.
class AnyLayer {
 public:
  template <LayerDescription D>
  AnyLayer(
      D description)  // NOLINT(google-explicit-constructor): lists of descriptions are the point
      : held_(std::make_shared<Holder<D>>(std::move(description))) {}

  [[nodiscard]] std::string kind() const { return held_->kind(); }
  /// As the user gave it, perhaps empty; Sequential::name(i) is the effective one.
  [[nodiscard]] std::string given_name() const { return held_->given_name(); }
  [[nodiscard]] Shape output_shape(const Shape& in) const { return held_->output_shape(in); }
  [[nodiscard]] std::vector<ParameterSpec> parameters() const { return held_->parameters(); }
  [[nodiscard]] std::string summary() const { return held_->summary(); }
  [[nodiscard]] std::size_t saved_bytes(const Shape& x, const Shape& y) const {
    return held_->saved_bytes(x, y);
  }
  [[nodiscard]] std::size_t workspace_bytes(Context& context, const Shape& x) const {
    return held_->workspace_bytes(context, x);
  }
  [[nodiscard]] std::unique_ptr<Layer> bind(const Binding& binding) const {
    return held_->bind(binding);
  }
  /// The description's kTraits, or the defaults.
  [[nodiscard]] LayerTraits traits() const { return held_->traits(); }
  /// The description when it is a D, else null: how the planner recognises neighbours.
  template <class D>
  [[nodiscard]] const D* get_if() const {
    const auto* holder = dynamic_cast<const Holder<D>*>(held_.get());
    return holder == nullptr ? nullptr : &holder->description;
  }

 private:
  struct Concept {
    virtual ~Concept() = default;
    [[nodiscard]] virtual std::string kind() const = 0;
    [[nodiscard]] virtual std::string given_name() const = 0;
    [[nodiscard]] virtual Shape output_shape(const Shape& in) const = 0;
    [[nodiscard]] virtual std::vector<ParameterSpec> parameters() const = 0;
    [[nodiscard]] virtual std::string summary() const = 0;
    [[nodiscard]] virtual std::size_t saved_bytes(const Shape& x, const Shape& y) const = 0;
    [[nodiscard]] virtual std::size_t workspace_bytes(Context& context, const Shape& x) const = 0;
    [[nodiscard]] virtual std::unique_ptr<Layer> bind(const Binding& binding) const = 0;
    [[nodiscard]] virtual LayerTraits traits() const = 0;
  };
  template <class D>
  struct Holder final : Concept {
    explicit Holder(D d) : description(std::move(d)) {}
    [[nodiscard]] std::string kind() const override { return D::kKind; }
    [[nodiscard]] std::string given_name() const override { return description.name; }
    [[nodiscard]] Shape output_shape(const Shape& in) const override {
      return description.output_shape(in);
    }
    [[nodiscard]] std::vector<ParameterSpec> parameters() const override {
      return description.parameters();
    }
    [[nodiscard]] std::string summary() const override { return description.summary(); }
    [[nodiscard]] std::size_t saved_bytes(const Shape& x, const Shape& y) const override {
      return description.saved_bytes(x, y);
    }
    [[nodiscard]] std::size_t workspace_bytes(Context& context, const Shape& x) const override {
      return description.workspace_bytes(context, x);
    }
    [[nodiscard]] std::unique_ptr<Layer> bind(const Binding& binding) const override {
      return description.bind(binding);
    }
    [[nodiscard]] LayerTraits traits() const override {
      if constexpr (requires { D::kTraits; }) {
        return D::kTraits;
      } else {
        return {};
      }
    }
    D description;
  };

  std::shared_ptr<const Concept> held_;
};

/// Layers one after another. A value: copying is cheap. Layers without a name are called after
/// their kind: the only one of its kind "fc", several "conv_1", "conv_2" in order.
class Sequential {
 public:
  /// Throws UsageError for no layers, two layers of one name, or a name that is not [A-Za-z0-9_]+.
  /// The numbers of a kind count the layers that were given no name.
  Sequential(std::initializer_list<AnyLayer> layers);
  explicit Sequential(std::vector<AnyLayer> layers);

  [[nodiscard]] int size() const { return static_cast<int>(layers_.size()); }
  [[nodiscard]] const AnyLayer& layer(int index) const {
    return layers_.at(static_cast<std::size_t>(index));
  }
  [[nodiscard]] const std::string& name(int index) const {
    return names_.at(static_cast<std::size_t>(index));
  }

  /// Shape of a sample behind every layer, given that of an input sample. Throws ShapeError naming
  /// the layer.
  [[nodiscard]] std::vector<Shape> shapes(const Shape& input_sample) const;

  /// A table for people: name, layer, output shape and parameters of every layer, and their sum.
  [[nodiscard]] std::string describe(const Shape& input_sample) const;

 private:
  std::vector<AnyLayer> layers_;
  std::vector<std::string> names_;
};

}  // namespace lockstep
