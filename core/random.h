// Counter-based random numbers: the same value for the same key and counter, on every backend.
//
// Philox4x32-10 of Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC
// 2011). A number depends on (seed, purpose, layer, epoch, index) alone, never on who draws it or
// when, so initial weights, shuffles and dropout masks are equal for any number of replicas.
#pragma once

#include <array>
#include <cstdint>

namespace lockstep {

/// What random numbers are for. The values are part of what a seed means: never renumber them.
enum class RandomPurpose : std::uint32_t { weights = 1, shuffle = 2, dropout = 3, synthetic = 4 };

using PhiloxBlock = std::array<std::uint32_t, 4>;

/// Ten rounds of Philox4x32 on one counter block.
[[nodiscard]] constexpr PhiloxBlock philox4x32(PhiloxBlock counter,
                                               std::array<std::uint32_t, 2> key) {
  constexpr std::uint32_t kMultiplier0 = 0xD2511F53;
  constexpr std::uint32_t kMultiplier1 = 0xCD9E8D57;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9;
  constexpr std::uint32_t kWeyl1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{kMultiplier0} * counter[0];
    const std::uint64_t product1 = std::uint64_t{kMultiplier1} * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(product0)};
    key = {key[0] + kWeyl0, key[1] + kWeyl1};
  }
  return counter;
}

/// Names one stream of random numbers. `item` is a layer, parameter or sample number, `epoch` 0
/// where there is none.
struct RandomKey {
  std::uint64_t seed = 0;
  RandomPurpose purpose = RandomPurpose::weights;
  std::uint32_t item = 0;
  std::uint32_t epoch = 0;
};

/// Four random words: number `block` of the stream `key` for `sample` (a global sample index, or
/// 0). Counter words: block, sample, epoch, purpose << 24 | item (item < 2^24); key words: the
/// seed.
[[nodiscard]] constexpr PhiloxBlock random_block(const RandomKey& key, std::uint32_t sample,
                                                 std::uint32_t block) {
  return philox4x32(
      {block, sample, key.epoch,
       (static_cast<std::uint32_t>(key.purpose) << 24) | (key.item & 0xFFFFFFU)},
      {static_cast<std::uint32_t>(key.seed), static_cast<std::uint32_t>(key.seed >> 32)});
}

/// Uniform in [0, 1) with 24 bits, exact in float.
[[nodiscard]] constexpr float uniform_float(std::uint32_t word) {
  return static_cast<float>(word >> 8) * 0x1p-24F;
}

}  // namespace lockstep
