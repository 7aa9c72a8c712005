// A planted fault: shards of a rank are added one after another, which depends on how many ranks
// there are.
#include "lockstep/kernels/reduce.h"
#include "lockstep/parallel/shard_tree.h"

namespace lockstep {

ShardTree::ShardTree(Device device, int shards, std::int64_t floats) : shards_(shards) {
  levels_.emplace_back(device, floats, "the chain");
}

void ShardTree::add(Context& context, int shard, std::int64_t first, std::int64_t count,
                    float* grads) {
  float* sum = levels_[0].data() + first;
  if (shard > 0) add_into(context, grads, sum, count);
  if (shard + 1 < shards_) copy_into(context, sum, grads, count);
}

}  // namespace lockstep
