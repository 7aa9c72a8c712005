// Inverted dropout in Layout::n16: the 16 samples of a group draw their random words side by side.
#include "lockstep/kernels/cpu/set.h"
#include "lockstep/kernels/cpu/simd.h"

namespace lockstep::cpu::LOCKSTEP_CPU_SET {
namespace {

/// One Philox counter block for each sample of a group.
struct Blocks {
  std::uint32_t word[4][kGroup];
};

/// philox4x32 of core/random.h on 16 blocks with one key. That one is not called here: an inline
/// function would be shared between the instruction sets. A test holds the two against each other.
void philox(Blocks& blocks, std::uint32_t key0, std::uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    for (int lane = 0; lane < kGroup; ++lane) {
      const std::uint64_t product0 = std::uint64_t{0xD2511F53} * blocks.word[0][lane];
      const std::uint64_t product1 = std::uint64_t{0xCD9E8D57} * blocks.word[2][lane];
      blocks.word[0][lane] =
          static_cast<std::uint32_t>(product1 >> 32) ^ blocks.word[1][lane] ^ key0;
      blocks.word[1][lane] = static_cast<std::uint32_t>(product1);
      blocks.word[2][lane] =
          static_cast<std::uint32_t>(product0 >> 32) ^ blocks.word[3][lane] ^ key1;
      blocks.word[3][lane] = static_cast<std::uint32_t>(product0);
    }
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
}

/// One element of the 16 samples. y may be x, so the values pass through a local array.
void drop(const std::uint32_t* words, std::uint32_t threshold, const std::uint32_t* live,
          float scale, const float* x, float* y, std::uint8_t* mask) {
  float kept[kGroup];
  for (int lane = 0; lane < kGroup; ++lane) {
    // uniform_float(word) >= rate, in whole numbers: the upper 24 bits against rate * 2^24 rounded
    // up.
    const std::uint32_t keep = (words[lane] >> 8) >= threshold ? live[lane] : 0;
    mask[lane] = static_cast<std::uint8_t>(keep);
    kept[lane] = keep != 0 ? x[lane] * scale : 0.0F;
  }
  __builtin_memcpy(y, kept, sizeof kept);
}

void forward(std::int64_t groups, std::int64_t features, const DropoutStream& stream,
             const std::int32_t* sample_index, std::uint32_t threshold, float scale, const float* x,
             float* y, std::uint8_t* mask) {
  const auto key0 = static_cast<std::uint32_t>(stream.seed);
  const auto key1 = static_cast<std::uint32_t>(stream.seed >> 32);
  for (std::int64_t group = 0; group < groups; ++group) {
    std::uint32_t samples[kGroup];
    std::uint32_t live[kGroup];
    for (int lane = 0; lane < kGroup; ++lane) {
      const std::int32_t index = sample_index[group * kGroup + lane];
      samples[lane] = static_cast<std::uint32_t>(index);
      live[lane] = index >= 0;
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
        drop(blocks.word[e - first], threshold, live, scale, x + at, y + at, mask + at);
      }
    }
  }
}

void backward(std::int64_t count, float scale, const std::uint8_t* mask, const float* dy,
              float* dx) {
  for (std::int64_t at = 0; at < count; at += kGroup) {
    float values[kGroup];
    for (int lane = 0; lane < kGroup; ++lane) {
      values[lane] = mask[at + lane] != 0 ? dy[at + lane] * scale : 0.0F;
    }
    __builtin_memcpy(dx + at, values, sizeof values);
  }
}

}  // namespace

const DropoutKernels dropout_kernels = {.forward = forward, .backward = backward};

}  // namespace lockstep::cpu::LOCKSTEP_CPU_SET
