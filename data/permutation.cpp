// Fisher-Yates over counter-based random numbers.
#include "lockstep/data/permutation.h"

#include <array>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/core/random.h"

namespace lockstep {
namespace {

/// The words of one random stream, one after another.
class WordStream {
 public:
  explicit WordStream(const RandomKey& key) : key_(key) {}

  std::uint32_t next() {
    if (used_ == words_.size()) {
      words_ = random_block(key_, 0, block_++);
      used_ = 0;
    }
    return words_[used_++];
  }

  /// Uniform in [0, range): Lemire, "Fast random integer generation in an interval" (2019).
  std::uint32_t below(std::uint32_t range) {
    std::uint64_t product = std::uint64_t{next()} * range;
    if (static_cast<std::uint32_t>(product) < range) {
      const std::uint32_t threshold = (0U - range) % range;
      while (static_cast<std::uint32_t>(product) < threshold)
        product = std::uint64_t{next()} * range;
    }
    return static_cast<std::uint32_t>(product >> 32);
  }

 private:
  RandomKey key_;
  PhiloxBlock words_{};
  std::size_t used_ = words_.size();
  std::uint32_t block_ = 0;
};

}  // namespace

void shuffle_epoch(std::uint64_t seed, std::uint32_t epoch, std::int64_t count,
                   std::vector<std::int32_t>& order) {
  if (count < 0 || count > std::numeric_limits<std::int32_t>::max()) {
    throw UsageError(message("shuffle_epoch: count is ", count, ", expected 0 to 2^31 - 1"));
  }
  order.resize(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  WordStream words({.seed = seed, .purpose = RandomPurpose::shuffle, .item = 0, .epoch = epoch});
  for (std::size_t left = order.size(); left > 1; --left) {
    std::swap(order[left - 1], order[words.below(static_cast<std::uint32_t>(left))]);
  }
}

}  // namespace lockstep
