// Inverted dropout in Layout::n16: the 16 samples of a group draw their random words side by side.
#include "lockstep/kernels/cpu/set.h"
#include "lockstep/kernels/cpu/simd.h"

namespace lockstep::cpu::LOCKSTEP_CPU_SET {
namespace {

typedef std::uint32_t Words __attribute__((vector_size(kLanes * 4)));

LOCKSTEP_INLINE Ints load_ints(const std::int32_t* from) {
  Ints value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

/// One Philox counter block for each sample of a group.
struct Blocks {
  std::uint32_t word[4][kGroup];
};

/// The upper half of each product. A loop of its own: this is the shape that compilers vectorize.
LOCKSTEP_INLINE void multiply_high(std::uint32_t factor, const std::uint32_t (&words)[kGroup],
                                   std::uint32_t (&high)[kGroup]) {
  for (int lane = 0; lane < kGroup; ++lane) {
    high[lane] = static_cast<std::uint32_t>(std::uint64_t{factor} * words[lane] >> 32);
  }
}

/// philox4x32 of core/random.h on 16 blocks with one key. That one is not called here: an inline
/// function would be shared between the instruction sets. A test holds the two against each other.
LOCKSTEP_INLINE void philox(Blocks& blocks, std::uint32_t key0, std::uint32_t key1) {
  constexpr std::uint32_t kMultiplier0 = 0xD2511F53;
  constexpr std::uint32_t kMultiplier1 = 0xCD9E8D57;
  auto& word = blocks.word;
  for (int round = 0; round < 10; ++round) {
    std::uint32_t high0[kGroup];
    std::uint32_t high1[kGroup];
    multiply_high(kMultiplier0, word[0], high0);
    multiply_high(kMultiplier1, word[2], high1);
    for (int lane = 0; lane < kGroup; ++lane) {
      const std::uint32_t low0 = kMultiplier0 * word[0][lane];
      const std::uint32_t low1 = kMultiplier1 * word[2][lane];
      word[0][lane] = high1[lane] ^ word[1][lane] ^ key0;
      word[1][lane] = low1;
      word[2][lane] = high0[lane] ^ word[3][lane] ^ key1;
      word[3][lane] = low0;
    }
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
}

/// One element of the 16 samples. `live` is all ones for a sample, 0 for an empty place. y may be
/// x: a vector is read before it is written.
LOCKSTEP_INLINE void drop(const std::uint32_t* words, std::int32_t threshold,
                          const std::int32_t* live, float scale, const float* x, float* y,
                          std::uint8_t* mask) {
  std::int32_t kept[kGroup];
  for (int part = 0; part < kParts; ++part) {
    Words word;
    __builtin_memcpy(&word, words + part * kLanes, sizeof word);
    // uniform_float(word) >= rate, in whole numbers: the upper 24 bits against rate * 2^24 rounded
    // up.
    const Ints keep = ((Ints)(word >> 8) >= threshold) & load_ints(live + part * kLanes);
    store(y + part * kLanes, select(keep, load(x + part * kLanes) * scale, Floats{}));
    __builtin_memcpy(kept + part * kLanes, &keep, sizeof keep);
  }
  std::uint8_t bytes[kGroup];
  for (int lane = 0; lane < kGroup; ++lane) bytes[lane] = static_cast<std::uint8_t>(kept[lane] & 1);
  __builtin_memcpy(mask, bytes, sizeof bytes);
}

void forward(std::int64_t groups, std::int64_t features, const DropoutStream& stream,
             const std::int32_t* sample_index, std::uint32_t threshold, float scale, const float* x,
             float* y, std::uint8_t* mask) {
  const auto key0 = static_cast<std::uint32_t>(stream.seed);
  const auto key1 = static_cast<std::uint32_t>(stream.seed >> 32);
  for (std::int64_t group = 0; group < groups; ++group) {
    std::uint32_t samples[kGroup];
    std::int32_t live[kGroup];
    for (int lane = 0; lane < kGroup; ++lane) {
      const std::int32_t index = sample_index[group * kGroup + lane];
      samples[lane] = static_cast<std::uint32_t>(index);
      live[lane] = index >= 0 ? -1 : 0;
    }
    for (std::int64_t first = 0; first < features; first += 4) {
      Blocks blocks;
      for (int lane = 0; lane < kGroup; ++lane) {
        blocks.word[0][lane] = static_cast<std::uint32_t>(first / 4);
        blocks.word[1][lane] = samples[lane];
        blocks.word[2][lane] = stream.epoch;
        blocks.word[3][lane] = stream.tag;
      }
      philox(blocks, key0, key1);
      for (std::int64_t e = first; e < features && e < first + 4; ++e) {
        const std::int64_t at = (group * features + e) * kGroup;
        drop(blocks.word[e - first], static_cast<std::int32_t>(threshold), live, scale, x + at,
             y + at, mask + at);
      }
    }
  }
}

void backward(std::int64_t count, float scale, const std::uint8_t* mask, const float* dy,
              float* dx) {
  for (std::int64_t at = 0; at < count; at += kGroup) {
    std::int32_t kept[kGroup];
    for (int lane = 0; lane < kGroup; ++lane) kept[lane] = mask[at + lane];
    for (int part = 0; part < kParts; ++part) {
      const Ints keep = load_ints(kept + part * kLanes);
      const std::int64_t here = at + part * kLanes;
      store(dx + here, select(keep != 0, load(dy + here) * scale, Floats{}));
    }
  }
}

}  // namespace

const DropoutKernels dropout_kernels = {.forward = forward, .backward = backward};

}  // namespace lockstep::cpu::LOCKSTEP_CPU_SET
