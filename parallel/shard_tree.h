// The sum of a rank's shard gradients.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/core/buffer.h"
#include "lockstep/core/context.h"

namespace lockstep {

/// Adds gradient arenas by the binary tree over the shard number, as shards come one after another:
/// a binary counter of finished subtrees. For a power of two of shards per rank this is the lower
/// part of the tree over all shards, whatever the number of ranks; the communicator's ordered
/// reduction is the upper part.
///
///   shard      0   1   2   3        level 0 keeps shard 0, then 2
///               \ /     \ /         level 1 keeps 0+1
///               0+1     2+3
///                  \   /
///                (0+1)+(2+3)
class ShardTree {
 public:
  /// For `shards` shards a step, each a gradient of `floats` floats.
  ShardTree(Device device, int shards, std::int64_t floats);

  /// `grads` holds floats [first, first + count) of shard `shard` of this rank, shards from 0 up
  /// for each range; it is overwritten, for the last shard with the sum over all of them.
  void add(Context& context, int shard, std::int64_t first, std::int64_t count, float* grads);

 private:
  int shards_;
  std::vector<Arena> levels_;  ///< levels_[l] holds a finished subtree of 2^l shards
};

}  // namespace lockstep
