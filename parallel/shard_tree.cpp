#include "lockstep/parallel/shard_tree.h"

#include <bit>

#include "lockstep/kernels/reduce.h"

namespace lockstep {

ShardTree::ShardTree(Device device, int shards, std::int64_t floats) : shards_(shards) {
  const int levels = std::bit_width(static_cast<unsigned>(shards - 1));
  for (int level = 0; level < levels; ++level)
    levels_.emplace_back(device, floats, "the shard tree");
}

void ShardTree::add(Context& context, int shard, std::int64_t first, std::int64_t count,
                    float* grads) {
  const auto take = [&](std::size_t level) {
    add_into(context, grads, levels_[level].data() + first, count);
  };
  const auto pending = [&](std::size_t level) { return ((shard >> level) & 1) != 0; };

  std::size_t level = 0;
  for (; pending(level); ++level) take(level);
  if (shard + 1 < shards_) {
    copy_into(context, levels_[level].data() + first, grads, count);
    return;
  }
  // Subtrees that have no sibling because the number of shards is no power of two.
  for (; level < levels_.size(); ++level) {
    if (pending(level)) take(level);
  }
}

}  // namespace lockstep
