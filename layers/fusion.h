// Which neighbours of a model one operation computes, and the Layers that do. Internal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/core/context.h"
#include "lockstep/layers/layer.h"
#include "lockstep/layers/sequential.h"

namespace lockstep {

/// Consecutive layers of a model that become one Layer. At most the first has parameters.
struct Unit {
  enum class Kind {
    single,       ///< one layer
    conv_pool,    ///< Conv2d, ReLU or not, MaxPool2d
    linear_loss,  ///< the last layer, a Linear whose forward pass comes with the loss
  };
  int first = 0;
  int last = 0;
  Kind kind = Kind::single;
};

/// Every layer on its own.
[[nodiscard]] std::vector<Unit> single_units(const Sequential& model);

/// The layers of `model`, together where kernels/fused.h takes them for blocks of `block` samples
/// on this context.
[[nodiscard]] std::vector<Unit> fused_units(const Context& context, const Sequential& model,
                                            const Shape& input_sample, std::int64_t block);

/// Whether the units compute a block of several shards with bits that do not depend on how many
/// those are, and can keep their gradients apart. True for our own kernels; the libraries' choose
/// by the size of the batch, and of a user's layer we do not know.
[[nodiscard]] bool can_span_shards(const Sequential& model, const std::vector<Unit>& units);

/// What a description says of itself, for a unit. Shapes are those of a block.
[[nodiscard]] LayerTraits unit_traits(const Sequential& model, const Unit& unit);
[[nodiscard]] std::size_t unit_saved_bytes(const Sequential& model, const Unit& unit,
                                           const Shape& x, const Shape& y);
[[nodiscard]] std::size_t unit_workspace_bytes(Context& context, const Sequential& model,
                                               const Unit& unit, const Shape& x, int shards,
                                               bool training);
[[nodiscard]] std::unique_ptr<Layer> bind_unit(const Sequential& model, const Unit& unit,
                                               const Binding& binding);
/// "conv_1+pool_1", and one line that says what the unit is.
[[nodiscard]] std::string unit_name(const Sequential& model, const Unit& unit);
[[nodiscard]] std::string unit_summary(const Sequential& model, const Unit& unit);

}  // namespace lockstep
