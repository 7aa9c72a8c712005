// What a plan decides before it takes memory: layout, block, which tensors share a place. Internal.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/core/context.h"
#include "lockstep/core/tensor.h"
#include "lockstep/layers/fusion.h"
#include "lockstep/layers/memory_map.h"
#include "lockstep/layers/sequential.h"

namespace lockstep {

/// The layout that a device computes on, and how many samples make a whole group there.
struct BlockForm {
  Layout layout = Layout::canonical;
  std::int64_t group = 1;
};
[[nodiscard]] BlockForm block_form(DeviceKind kind);

/// One unit's tensors: batch shapes, and numbers in the memory map (-1: there is none). Units that
/// share a tensor, or work in place, have the same number.
struct PlannedLayer {
  Unit unit;
  Shape x_shape;
  Shape y_shape;
  int x = -1;
  int y = -1;
  int dx = -1;
  int dy = -1;
  int saved = -1;
};

struct Blueprint {
  std::int64_t block = 0;
  Layout layout = Layout::canonical;
  std::vector<PlannedLayer> layers;  ///< one a unit
  /// The lowest unit with a backward pass; the number of units when there is none.
  int first_backward = 0;
  MemoryMap memory;  ///< placed
};

/// Plans `model`, cut into `units`, for blocks of `block` samples, rounded up to whole groups.
/// Errors name the layer.
[[nodiscard]] Blueprint make_blueprint(const Sequential& model, const std::vector<Unit>& units,
                                       const Shape& input_sample, std::int64_t block,
                                       BlockForm form, bool training);

}  // namespace lockstep
