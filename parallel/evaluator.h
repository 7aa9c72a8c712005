// Exact evaluation of a model on one device. Internal.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "lockstep/core/context.h"
#include "lockstep/core/step_state.h"
#include "lockstep/data/dataset.h"
#include "lockstep/layers/parameter.h"
#include "lockstep/layers/plan.h"
#include "lockstep/layers/sequential.h"
#include "lockstep/parallel/feed.h"

namespace lockstep {

/// Samples of an evaluation chunk: the same for any batch size and number of replicas, so that its
/// figures are too.
inline constexpr std::int64_t kEvaluationChunk = 256;

class Evaluator {
 public:
  /// Everything given outlives the evaluator. `params` is device memory.
  Evaluator(Context& context, const Sequential& model, const ParameterLayout& layout,
            const float* params, Residence residence, bool fuse);

  /// Evaluates chunks rank, rank + size, rank + 2 * size, ... of `data` and adds their sums to
  /// `sums`, in that order. `chunk_done` is called after each has been given to the device. Data
  /// sets are kept on the device, the last few.
  void run(const Dataset& data, int rank, int size, const std::function<void()>& chunk_done,
           std::vector<ChunkSums>& sums);

 private:
  /// A data set on this device, and which of its samples are this rank's.
  struct Share {
    Share(Context& context, const Dataset& data, Residence residence, int rank, int size);
    Feed feed;
    int rank;
    int size;
    std::vector<std::int32_t> order;
    Buffer device_order;
  };

  [[nodiscard]] Share& share_of(const Dataset& data, int rank, int size);
  [[nodiscard]] Plan& plan_for(const Dataset& data);

  Context& context_;
  const Sequential& model_;
  const ParameterLayout& layout_;
  const float* params_;
  Residence residence_;
  bool fuse_;
  Buffer state_;
  std::vector<std::unique_ptr<Share>> shares_;  ///< newest last
  std::unique_ptr<Plan> plan_;
  std::int64_t plan_soft_classes_ = 0;
};

}  // namespace lockstep
