#include "cudnn/random_order.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <random>

namespace cusim {

std::vector<Index> fixed_order(Index count) {
  std::vector<Index> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), Index{0});
  return order;
}

std::vector<Index> random_order(Index count) {
  static std::atomic<std::uint32_t> calls{0};
  const char* seed = std::getenv("CUSIM_SEED");
  std::seed_seq seeds{seed ? static_cast<std::uint32_t>(std::strtoul(seed, nullptr, 10)) : 0U,
                      calls.fetch_add(1, std::memory_order_relaxed)};
  std::mt19937 random(seeds);
  std::vector<Index> order = fixed_order(count);
  std::shuffle(order.begin(), order.end(), random);
  return order;
}

}  // namespace cusim
