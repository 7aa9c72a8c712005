#include "lockstep/parallel/sharding.h"

#include <bit>
#include <string>

#include "lockstep/core/error.h"

namespace lockstep {

namespace {

constexpr std::int64_t kMaxBatch = std::int64_t{1} << 24;
constexpr int kMaxShards = 1 << 16;

void check_batch(std::int64_t batch_size, std::string_view what) {
  if (batch_size < 1 || batch_size > kMaxBatch) {
    throw UsageError(
        message("sharding: ", what, " of ", batch_size, "; it is from 1 to ", kMaxBatch));
  }
}

/// "1, 2, 3, 6": the numbers of replicas from 1 to `most` that divide `shards`.
std::string divisors(int shards, int most) {
  std::string text;
  for (int replicas = 1; replicas <= shards && replicas <= most; ++replicas) {
    if (shards % replicas != 0) continue;
    text += message(text.empty() ? "" : ", ", replicas);
  }
  return text;
}

Sharding cut(int replicas, int shards, std::int64_t batch_size) {
  return {.replicas = replicas,
          .shards = shards,
          .batch_size = batch_size,
          .shard_samples = (batch_size + shards - 1) / shards};
}

/// Samples of a full batch that the last replica gets, the one with the fewest; below 0 when others
/// run dry too.
std::int64_t fewest_samples(const Sharding& sharding) {
  return sharding.batch_size -
         (sharding.replicas - 1) * sharding.per_replica() * sharding.shard_samples;
}

/// Throws where `replicas`, which the user named, cannot share `shards`.
void check_replicas(int replicas, int shards, Reduce reduce) {
  if (shards % replicas == 0) return;
  if (reduce == Reduce::invariant) {
    throw UsageError(message("sharding: ", replicas, " replicas do not divide ", shards,
                             " shards; with these shards use a number of devices out of ",
                             divisors(shards, shards)));
  }
  throw UsageError(message("sharding: ", shards, " shards are not a multiple of ", replicas,
                           " replicas; use shards out of ", replicas, ", ", 2 * replicas, ", ",
                           3 * replicas, ", ... or a number of devices out of ",
                           divisors(shards, replicas)));
}

}  // namespace

Sharding make_sharding(const Devices& devices, Reduce reduce, int shards, std::int64_t batch_size,
                       std::int64_t batch_per_replica) {
  if (devices.list.empty()) throw UsageError("sharding: no devices; name at least one");
  if (batch_per_replica < 0) {
    throw UsageError(message("sharding: a batch per replica of ", batch_per_replica,
                             "; it is from 1 to ", kMaxBatch, ", or 0 to use the batch size"));
  }
  if (batch_per_replica > 0) {
    check_batch(batch_per_replica, "a batch per replica");
  } else {
    check_batch(batch_size, "a batch size");
  }
  if (shards < 0 || shards > kMaxShards) {
    throw UsageError(
        message("sharding: ", shards, " shards; use 1 to ", kMaxShards, ", or 0 for the default"));
  }
  if (shards == 0 && reduce == Reduce::invariant) shards = kInvariantShards;
  if (reduce == Reduce::invariant && !std::has_single_bit(static_cast<unsigned>(shards))) {
    throw UsageError(
        message("sharding: ", shards,
                " shards; the invariant mode takes a power of two: 1, 2, 4, 8, 16, ..."));
  }

  const int listed = static_cast<int>(devices.list.size());
  const auto with = [&](int replicas) {
    return cut(replicas, shards == 0 ? replicas : shards,
               batch_per_replica > 0 ? batch_per_replica * replicas : batch_size);
  };
  int replicas = listed;
  if (devices.automatic) {
    const bool on_cpu = devices.list.front().kind == DeviceKind::cpu;
    const auto fits = [&](int candidate) {
      if (shards != 0 && shards % candidate != 0) return false;
      const Sharding sharding = with(candidate);
      return sharding.batch_size <= kMaxBatch &&
             (!on_cpu || batch_per_replica > 0 || fewest_samples(sharding) >= kSamplesPerReplica);
    };
    while (replicas > 1 && !fits(replicas)) --replicas;
  } else if (shards != 0) {
    check_replicas(replicas, shards, reduce);
  }
  const Sharding sharding = with(replicas);
  check_batch(sharding.batch_size, "a batch size");
  return sharding;
}

Sharding resume_sharding(const Devices& devices, Reduce reduce, int shards,
                         std::int64_t batch_size) {
  const auto listed = static_cast<int>(devices.list.size());
  const bool cannot_share = !devices.automatic && listed > 0 && shards % listed != 0;
  if (cannot_share && reduce == Reduce::fast) shards = 0;
  return make_sharding(devices, reduce, shards, batch_size, 0);
}

std::int64_t steps_per_epoch(std::int64_t samples, std::int64_t batch_size, LastBatch last_batch) {
  check_batch(batch_size, "a batch size");
  const std::int64_t full = samples / batch_size;
  return last_batch == LastBatch::keep && samples % batch_size != 0 ? full + 1 : full;
}

}  // namespace lockstep
