// The loss that models are trained with.
#pragma once

namespace lockstep {

/// Mean softmax cross-entropy over the samples of the global batch. Targets are class indices or
/// soft targets, whichever the data set has; the model's output is the logits.
struct SoftmaxCrossEntropy {};

}  // namespace lockstep
