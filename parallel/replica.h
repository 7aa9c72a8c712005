// One replica: the model's arenas and plans on one device, and the training step.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "lockstep/core/context.h"
#include "lockstep/core/step_state.h"
#include "lockstep/data/dataset.h"
#include "lockstep/kernels/gather.h"
#include "lockstep/layers/parameter.h"
#include "lockstep/layers/plan.h"
#include "lockstep/layers/sequential.h"
#include "lockstep/optim/optimizer.h"
#include "lockstep/parallel/buckets.h"
#include "lockstep/parallel/communicator.h"
#include "lockstep/parallel/shard_tree.h"
#include "lockstep/parallel/sharding.h"

namespace lockstep {

/// What training has reached, in host memory and free of the number of replicas.
struct TrainingState {
  std::vector<float> params;                ///< the parameter arena
  std::vector<std::vector<float>> moments;  ///< the optimizer's arenas, in its order
  StepState step;
  EpochSums sums;
};

/// Sums over one chunk of an evaluation.
struct ChunkSums {
  double loss = 0;
  std::int64_t correct = 0;
};

/// Samples of an evaluation chunk: the same for any batch size and number of replicas, so that its
/// figures are too.
inline constexpr std::int64_t kEvaluationChunk = 256;

/// What all replicas share; outlives them.
struct ReplicaSetup {
  const Sequential& model;
  const ParameterLayout& layout;
  const Optimizer& optimizer;
  std::uint64_t seed = 0;
  Reduce reduce = Reduce::fast;
  std::int64_t bucket_bytes = 0;
  float l2 = 0;
  float clip_norm = 0;
};

/// Used by the one thread that drives the replica.
class Replica {
 public:
  Replica(Device device, const ReplicaSetup& setup, const TrainingState& start);

  /// Plans training on `train`, whose memory the caller keeps.
  void begin(const Dataset& train, const Sharding& sharding);
  /// Starts or goes on with an epoch whose tables are given; the caller keeps their memory.
  void open_epoch(const EpochTables& tables, std::uint32_t* stop_request);
  /// One training step with all other replicas; collective.
  void step(Communicator& communicator);
  /// Ends the epoch: counters move on, sums are reset but for the moving average.
  void close_epoch();

  /// Evaluates chunks rank, rank + size, rank + 2 * size, ... of `data` and adds their sums to
  /// `sums`, in that order. `chunk_done` is called after each.
  void evaluate(const Dataset& data, int rank, int size, const std::function<void()>& chunk_done,
                std::vector<ChunkSums>& sums);

  [[nodiscard]] const StepState& state() const { return device_state()->step; }
  [[nodiscard]] const EpochSums& sums() const { return device_state()->sums; }
  [[nodiscard]] TrainingState export_state() const;
  /// After a step that froze the state: name of the first parameter, in the order of the backward
  /// pass, whose reduced gradient is not finite; empty when all are.
  [[nodiscard]] std::string first_nonfinite_gradient() const;
  /// Makes frozen steps run again.
  void thaw() { device_state()->step.frozen = 0; }
  void set_parameters(const std::vector<float>& params);

 private:
  /// Everything small that steps change, in one place of device memory.
  struct DeviceState {
    StepState step;
    EpochSums sums;
    double sum_of_squares = 0;
    double l2_term = 0;
    StepState evaluation;
  };

  [[nodiscard]] DeviceState* device_state() const { return state_.as<DeviceState>(); }
  [[nodiscard]] StepTail* tail() const;
  void run_shard(Communicator& communicator, int index);
  void finish_layer(Communicator& communicator, int index, int layer);
  void update();

  ReplicaSetup setup_;
  Context context_;
  Arena params_;
  Arena grads_;
  std::vector<Arena> moments_;
  std::vector<float*> moment_pointers_;
  Arena decay_mask_;  ///< 1 where weight decay and L2 apply
  Arena l2_factor_;   ///< setup.l2 * decay mask; empty without L2
  Buffer scratch_;    ///< of the sums over the arena
  Buffer state_;
  std::vector<Bucket> buckets_;

  Sharding sharding_;
  DeviceSamples samples_;
  EpochTables tables_;
  std::uint32_t* stop_request_ = nullptr;
  std::unique_ptr<Plan> plan_;
  std::optional<ShardTree> tree_;
  std::unique_ptr<Plan> evaluation_plan_;
  std::int64_t evaluation_soft_classes_ = 0;
};

}  // namespace lockstep
