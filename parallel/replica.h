// One replica: the model's arenas and plans on one device, and the training step. Internal.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/core/context.h"
#include "lockstep/core/step_state.h"
#include "lockstep/core/stream.h"
#include "lockstep/data/dataset.h"
#include "lockstep/kernels/gather.h"
#include "lockstep/layers/parameter.h"
#include "lockstep/layers/plan.h"
#include "lockstep/layers/sequential.h"
#include "lockstep/optim/optimizer.h"
#include "lockstep/parallel/buckets.h"
#include "lockstep/parallel/communicator.h"
#include "lockstep/parallel/evaluator.h"
#include "lockstep/parallel/feed.h"
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

/// What a rank found of a step that is not finite.
struct Nonfinite {
  /// "the parameter fc.weight", "sample 17", "the output of conv_1", "the gradient of fc.bias";
  /// empty when this rank's share of the step is finite.
  std::string where;
  bool in_weights = false;  ///< no step can be finite
};

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
  Precision precision = Precision::fp32;
  Residence residence = Residence::automatic;
  bool graph = true;  ///< on CUDA a step is one launch
  bool fuse = true;   ///< PlanOptions::fuse
  /// WorldOptions::stall_limit.
  std::chrono::seconds stall_limit{600};
  /// Set by another thread to ask for a stop; memory that every device can read.
  const std::uint32_t* stop_request = nullptr;
};

/// An epoch in host memory.
struct EpochPlan {
  const std::vector<std::int32_t>& permutation;
  const std::vector<float>& learning_rates;  ///< one per step
};

/// Used by the one thread that drives the replica; its device is the thread's current one.
class Replica {
 public:
  Replica(Device device, const ReplicaSetup& setup, const TrainingState& start);

  /// Plans training on `train`; collective.
  void begin(const Dataset& train, const Sharding& sharding, Communicator& communicator);
  /// Starts or goes on with an epoch; the caller keeps the tables.
  void open_epoch(const EpochPlan& epoch);
  /// Runs `count` steps of the open epoch with all other replicas, fewer when a stop was asked for
  /// or a gradient is not finite: state() says so then. `progressed` is called when state() and
  /// sums() are new. Collective.
  void run(Communicator& communicator, std::int64_t count, const std::function<void()>& progressed);
  /// Ends the epoch: counters move on, sums are reset but for the moving average.
  void close_epoch();

  [[nodiscard]] Evaluator& evaluator() { return evaluator_; }

  /// As of the last step that was looked at: the last of all when `run` is over.
  [[nodiscard]] const StepState& state() const { return seen_.step; }
  [[nodiscard]] const EpochSums& sums() const { return seen_.sums; }
  /// What the device has got to, also after a run that failed.
  [[nodiscard]] TrainingState export_state() const;
  /// After a step that froze the state: computes this rank's share of it again, without effect,
  /// and looks for the first value that is not finite.
  [[nodiscard]] Nonfinite find_nonfinite(Communicator& communicator);
  /// After a step that froze the state: counts it as skipped; the next run begins behind it.
  void skip_step();
  /// Hashes of parameters and moments, equal on all replicas that are in step.
  [[nodiscard]] std::vector<std::uint64_t> hash_state();
  void set_parameters(const std::vector<float>& params);

 private:
  /// Everything small that steps change, in one place of device memory.
  struct DeviceState {
    StepState step{};
    EpochSums sums{};
    double l2_term = 0;
  };
  /// A copy of the device's state on its way to the host.
  struct Look {
    explicit Look(Device device)
        : copy(device, sizeof(DeviceState), "the copy of the step state"), arrived(device) {}
    HostBuffer copy;
    Event arrived;
  };

  [[nodiscard]] DeviceState* device_state() const { return state_.as<DeviceState>(); }
  [[nodiscard]] float* plan_grads() const;
  [[nodiscard]] StepTail* tail_of(float* grads) const;
  void write_state();

  // The step: step.cpp.
  void step(Communicator& communicator);
  void run_shards(Communicator& communicator, int index);
  void run_forward();
  void finish_layer(Communicator& communicator, int index, int layer);
  void update();

  [[nodiscard]] bool graph_is_valid() const;
  void void_step(Communicator& communicator);
  void warm_up(Communicator& communicator);
  void record(Communicator& communicator);
  void run_windows(Communicator& communicator, std::int64_t count,
                   const std::function<void()>& progressed);
  void send(const Look& look);
  void receive(const Look& look, Communicator& communicator);

  ReplicaSetup setup_;
  Context context_;
  Arena params_;
  Arena grads_;
  std::vector<Arena> moments_;
  std::vector<float*> moment_pointers_;
  Arena decay_mask_;  ///< 1 where weight decay and L2 apply
  Arena l2_factor_;   ///< setup.l2 * decay mask; empty without L2
  Buffer scratch_;    ///< of the sums over the arena
  Buffer hash_;       ///< one word
  Buffer state_;
  HostBuffer abandoned_;  ///< a word that is set when reductions under way will not be finished
  const std::uint32_t* abandoned_address_;  ///< the device's
  std::vector<Bucket> buckets_;
  DeviceState seen_;           ///< what the host knows of the device's state
  bool device_leads_ = false;  ///< the device has been given steps that the host has not seen
  std::array<Look, 2> looks_;

  Sharding sharding_;
  std::unique_ptr<Feed> feed_;
  EpochTables tables_;
  Buffer permutation_;
  Buffer learning_rates_;
  std::unique_ptr<Plan> plan_;
  std::optional<ShardTree> tree_;
  /// Shards that the plan computes at once: one, or all of this rank's, whose gradients lie in
  /// shard_grads_ then.
  int shards_at_once_ = 1;
  Arena shard_grads_;
  bool reduces_ = true;               ///< false in a step that must not wait for other ranks
  std::string* nonfinite_ = nullptr;  ///< set while looking for what is not finite
  bool warm_ = false;
  std::shared_ptr<Graph> graph_ = std::make_shared<Graph>();
  // What the graph holds on to besides this replica's arenas: it is void when they have changed.
  int graph_workspace_ = 0;

  Evaluator evaluator_;
};

}  // namespace lockstep
