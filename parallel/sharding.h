// How a global batch is cut in shards and dealt to replicas.
#pragma once

#include <cstdint>

#include "lockstep/core/device.h"

namespace lockstep {

enum class Reduce {
  fast,       ///< shards = replicas unless asked otherwise; any order of summation
  invariant,  ///< the same bits for every number of replicas that divides the shards
};

/// What becomes of the samples that do not fill a batch at the end of an epoch.
enum class LastBatch {
  keep,  ///< a step of their own, weighted exactly
  drop,  ///< left out of this epoch
};

/// Whether data sets lie on the devices. On a CPU they always lie where they are.
enum class Residence {
  automatic,  ///< when a data set takes at most half of the device's free memory
  resident,
  streamed,  ///< the values come in windows of steps, in the order of the epoch
};

/// Default number of shards in invariant mode.
inline constexpr int kInvariantShards = 8;
/// Samples that a CPU replica gets at least when the number of replicas is left to us.
inline constexpr std::int64_t kSamplesPerReplica = 16;

/// Shards of equal shape; rank r computes shards [r * per_replica, (r + 1) * per_replica). Shard s
/// holds places [s * shard_samples, (s + 1) * shard_samples) of the batch; places beyond the batch
/// are empty.
struct Sharding {
  int replicas = 1;
  int shards = 1;
  std::int64_t batch_size = 0;
  std::int64_t shard_samples = 0;

  [[nodiscard]] int per_replica() const { return shards / replicas; }
  friend bool operator==(const Sharding&, const Sharding&) = default;
};

/// Decides it. `shards` 0 means the mode's default; `batch_per_replica` above 0 replaces
/// `batch_size`. With devices.automatic the largest legal number of replicas is taken, on a CPU one
/// that leaves each at least kSamplesPerReplica samples (with `batch_per_replica` each has what was
/// asked for). Throws UsageError saying what would be legal: no devices, batch sizes below 1 or
/// above 2^24, shards that are above 2^16, not a multiple of the replicas or, in invariant mode, no
/// power of two.
[[nodiscard]] Sharding make_sharding(const Devices& devices, Reduce reduce, int shards,
                                     std::int64_t batch_size, std::int64_t batch_per_replica);

/// For a training that goes on with `shards` shards and `batch_size` from a checkpoint. As
/// make_sharding; but in fast mode replicas that cannot share those shards get one each.
[[nodiscard]] Sharding resume_sharding(const Devices& devices, Reduce reduce, int shards,
                                       std::int64_t batch_size);

/// Steps of an epoch of `samples` samples.
[[nodiscard]] std::int64_t steps_per_epoch(std::int64_t samples, std::int64_t batch_size,
                                           LastBatch last_batch);

}  // namespace lockstep
