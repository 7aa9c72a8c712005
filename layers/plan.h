// A plan: the fixed sequence of operations for one block shape, with all buffers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/core/buffer.h"
#include "lockstep/core/context.h"
#include "lockstep/core/step_state.h"
#include "lockstep/kernels/gather.h"
#include "lockstep/layers/layer.h"
#include "lockstep/layers/parameter.h"
#include "lockstep/layers/sequential.h"

namespace lockstep {

struct Blueprint;

struct PlanOptions {
  std::int64_t block =
      0;  ///< samples computed at once; the planner rounds up to whole groups of 16 on a CPU
  bool training = false;          ///< with loss gradient and backward pass; dropout is active
  std::uint64_t seed = 0;         ///< keys dropout
  std::int64_t soft_classes = 0;  ///< length of a soft target; 0 means class indices
  bool fuse = true;  ///< neighbours become one operation where there is one (kernels/fused.h)
  /// A training block may be several shards of equal size: gradients of shard s go to grads + s *
  /// the layout's gradient_size(). See plan_can_span_shards.
  int shards = 1;
};

/// A Sequential bound to a block shape, a device and the arenas of one replica. The order of calls
/// for a block is gather into input() - forward - loss - backward(layer) from the last layer to the
/// first.
class Plan {
 public:
  /// `params` and, for training, `grads` are arenas of `layout` in the context's memory; they
  /// outlive the plan, `grads` once for each shard. `layout` is that of `model`, else UsageError.
  /// The model's output is one row of logits, as long as a soft target where there are some, else
  /// ShapeError. What a description throws gets the layer's name in front.
  Plan(Context& context, const Sequential& model, const ParameterLayout& layout,
       const Shape& input_sample, const PlanOptions& options, const float* params, float* grads);

  /// Samples of a block: the shape that everything here has.
  [[nodiscard]] std::int64_t block() const { return block_; }
  /// Layers of the model.
  [[nodiscard]] int layers() const { return static_cast<int>(unit_at_.size()); }
  /// Where the gathered block goes.
  [[nodiscard]] const GatheredBlock& input() const { return input_; }
  /// (N, classes) in the device's layout: valid after forward and loss (on a CPU after forward), in
  /// a training plan until backward begins.
  [[nodiscard]] ConstFloatView logits() const { return logits_; }
  /// (N) in device memory, after loss: loss and 0 or 1 for a right prediction; both 0 without a
  /// sample.
  [[nodiscard]] const float* losses() const { return losses_.as<float>(); }
  [[nodiscard]] const float* correct() const { return correct_.as<float>(); }

  void forward(Context& context, const StepState* state);
  /// Computes losses(), correct() and, in a training plan, the gradient of the logits.
  void loss(Context& context, const StepState* state);
  /// Forward and loss with a look at every value on the way: "sample 17", "the output of conv_1",
  /// "the loss of sample 17" is the first that has one which is not finite; empty when none has.
  /// Waits for the device and copies all activations: for finding a fault.
  [[nodiscard]] std::string find_nonfinite(Context& context, const StepState* state);
  /// Backward pass of one layer, with that of neighbours it was fused with: theirs do nothing
  /// then. Its parameters' gradients are overwritten when `first_block`, else
  /// added to. Does nothing for layers below the first one with parameters. Throws UsageError in a
  /// forward plan.
  void backward(Context& context, const StepState* state, int layer, bool first_block);

  /// A table for people: the bound layers with shapes, layouts and bytes of their buffers.
  [[nodiscard]] const std::string& describe() const { return description_; }

 private:
  void allocate(Context& context, const Blueprint& blueprint, const Shape& output,
                std::int64_t soft_classes);
  [[nodiscard]] Pass pass(const StepState* state) const;

  std::int64_t block_ = 0;
  bool training_ = false;
  int first_backward_ = 0;  ///< units below it have no parameters under them: no backward pass
  GatheredBlock input_;
  FloatView logits_;
  FloatView dlogits_;
  Buffer losses_;
  Buffer correct_;
  Buffer
      memory_;  ///< activations, gradients of activations, saved bytes: places are shared over time
  Buffer targets_;  ///< sample numbers and targets
  std::vector<std::unique_ptr<Layer>> units_;
  std::vector<std::string> names_;       ///< of the units, for messages
  std::vector<ConstFloatView> outputs_;  ///< of the units; overwritten by later ones
  /// The unit that begins with a layer of the model; -1 for one that belongs to its neighbour's.
  std::vector<int> unit_at_;
  /// The last layer, when its forward pass is one operation with the loss.
  struct LinearBeforeLoss {
    ConstFloatView x, w, b;
  };
  std::optional<LinearBeforeLoss> linear_;
  std::string description_;  ///< what describe() returns
};

/// Whether a plan can take `options.shards` shards at once, with the bits that each has on its own.
[[nodiscard]] bool plan_can_span_shards(const Context& context, const Sequential& model,
                                        const Shape& input_sample, const PlanOptions& options);

/// Samples that a plan on this context computes at once for shards of `shard_samples`: on a GPU the
/// shard. On a CPU as many groups of 16 as fit 512 KiB with the activations, their gradients and
/// saved bytes that a training plan holds for a group; at least one, and at least four where the
/// parameters alone are larger, so that they go through memory less often; at most the shard
/// rounded up. A function of the shapes and of PlanOptions::fuse alone, never of the machine:
/// results depend on it.
[[nodiscard]] std::int64_t block_samples(const Context& context, const Sequential& model,
                                         const Shape& input_sample, std::int64_t shard_samples,
                                         bool fuse);

}  // namespace lockstep
