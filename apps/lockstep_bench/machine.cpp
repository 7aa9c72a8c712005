#include "apps/lockstep_bench/machine.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "lockstep/config.h"
#include "lockstep/core/error.h"

#include "apps/lockstep_bench/loops.h"

namespace lockstep::apps {

namespace {

// Within first, second and third levels of caches, and beyond most of the last.
constexpr std::int64_t kLevelBytes[] = {std::int64_t{16} << 10, std::int64_t{256} << 10,
                                        std::int64_t{4} << 20, std::int64_t{16} << 20,
                                        std::int64_t{128} << 20};
constexpr std::int64_t kPasses = std::int64_t{1} << 20;
/// Moved by one measurement at least, so that reading the clock does not count.
constexpr std::int64_t kMovedBytes = std::int64_t{32} << 20;
constexpr int kTries = 3;

const MachineLoops& loops_of(CpuSet set) {
  if constexpr (kHasX86Sets) {
    if (set == CpuSet::avx2) return avx2::loops;
    if (set == CpuSet::avx512) return avx512::loops;
  }
  return baseline::loops;
}

/// The shortest of a few tries, in seconds.
template <class Work>
double shortest(const Work& work) {
  double best = 0;
  for (int i = 0; i < kTries; ++i) {
    const auto start = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    best = i == 0 ? seconds.count() : std::min(best, seconds.count());
  }
  return best;
}

}  // namespace

double Machine::bandwidth_for(double bytes) const {
  for (const MemoryLevel& level : levels) {
    if (bytes <= static_cast<double>(level.bytes)) return level.bandwidth;
  }
  return levels.back().bandwidth;
}

MachineMeter::MachineMeter(CpuSet set)
    : set_(set),
      memory_(Device{}, static_cast<std::size_t>(std::end(kLevelBytes)[-1]), "bandwidth") {
  for (const std::int64_t bytes : kLevelBytes) machine_.levels.push_back({bytes, 0});
}

void MachineMeter::measure() {
  const MachineLoops& loops = loops_of(set_);
  std::vector<float> out(static_cast<std::size_t>(loops.lanes));
  const double arithmetic =
      shortest([&] { loops.multiply_add(kPasses, 0.75F, 0.25F, out.data()); });
  // The sums tend to 1; reading one keeps the loop from being left out.
  if (!(out[0] > 0)) throw Error("ops: the loop of multiply-adds gave no number; please report it");
  machine_.peak = std::max(machine_.peak, static_cast<double>(loops.flops * kPasses) / arithmetic);
  for (MemoryLevel& level : machine_.levels) {
    constexpr std::int64_t kStep = 16;
    const auto count = level.bytes / 3 / static_cast<std::int64_t>(sizeof(float)) / kStep * kStep;
    const std::int64_t moved = 3 * count * static_cast<std::int64_t>(sizeof(float));
    const std::int64_t repetitions = std::max<std::int64_t>(1, kMovedBytes / moved);
    float* const a = memory_.as<float>();
    const double seconds = shortest([&] {
      for (std::int64_t i = 0; i < repetitions; ++i) {
        loops.triad(a, a + count, a + 2 * count, 0.5F, count);
      }
    });
    level.bandwidth = std::max(level.bandwidth, static_cast<double>(moved * repetitions) / seconds);
  }
}

}  // namespace lockstep::apps
