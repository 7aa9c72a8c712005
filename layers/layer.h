// A layer at work: bound by the planner to its places in the arenas.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/core/context.h"
#include "lockstep/core/step_state.h"
#include "lockstep/core/tensor.h"

namespace lockstep {

/// What a pass over one block reads besides the tensors that a layer is bound to. Pointers are
/// device memory.
struct Pass {
  const StepState* state = nullptr;
  const std::int32_t* sample_index = nullptr;  ///< (N) global sample numbers, -1 without a sample
  bool training = false;                       ///< dropout is active
};

/// What the planner may do with a layer's memory. A description that says nothing gets the
/// defaults, which are always right; it says otherwise with a member `static constexpr LayerTraits
/// kTraits`.
struct LayerTraits {
  enum class Output {
    own,              ///< y never overlaps x, dx never overlaps dy
    may_overwrite_x,  ///< y may be x, and dx may be dy
    is_x,  ///< y always is x under another shape, dx is dy: forward and backward move nothing
  };
  bool backward_reads_x = true;
  bool backward_reads_y = true;
  Output output = Output::own;
};

/// A layer with its tensors fixed. No call allocates or waits for a device.
class Layer {
 public:
  virtual ~Layer() = default;
  /// Computes y from x.
  virtual void forward(Context& context, const Pass& pass) = 0;
  /// Computes dx (overwritten, left out where nobody needs it) and the parameters' gradients from
  /// dy: overwritten when `first_block`, added to otherwise. Runs after `forward` of the same
  /// block.
  virtual void backward(Context& context, const Pass& pass, bool first_block) = 0;
};

struct BoundParameter {
  ConstFloatView value;
  FloatView grad;  ///< null data in a forward plan
};

/// Everything that a description gets to make a Layer of itself.
struct Binding {
  std::string name{};        ///< for messages
  std::uint32_t number = 0;  ///< of the layer in the model: keys its random numbers
  std::uint64_t seed = 0;
  ConstFloatView x;
  FloatView y;
  FloatView dx;       ///< null data: nobody needs it
  ConstFloatView dy;  ///< null data in a forward plan
  std::vector<BoundParameter> parameters{};
  /// The block is this many slices of equal size; the gradients of slice s lie s * grads_stride
  /// floats behind those of the first. Above 1 only for layers that the planner knows.
  int shards = 1;
  std::int64_t grads_stride = 0;
  /// What forward keeps for backward, as many bytes as the description asked for. Null in a forward
  /// plan.
  std::uint8_t* saved = nullptr;
};

}  // namespace lockstep
