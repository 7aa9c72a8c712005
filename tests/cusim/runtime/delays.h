// Random pauses before the operations of a stream.
#pragma once

#include <cstdint>

namespace cusim {

/// Streams that all pause alike keep their order: each has its own factor, drawn anew now and then.
/// The same stream of the same seed pauses alike in every run.
class Delays {
 public:
  Delays(std::uint64_t stream, unsigned seed, int longest_us)
      : random_(static_cast<std::uint32_t>(stream * 2654435761u) + seed), longest_us_(longest_us) {}

  /// The next pause in microseconds.
  int next() {
    if (longest_us_ == 0) return 0;
    constexpr unsigned kRedrawEvery = 64;
    constexpr int kFactors[] = {0, 1, 1, 20};
    random_ = random_ * 1664525u + 1013904223u;
    if (drawn_++ % kRedrawEvery == 0) factor_ = kFactors[random_ >> 20 & 3];
    return static_cast<int>(random_ >> 8) % longest_us_ * factor_;
  }

 private:
  std::uint32_t random_;
  int longest_us_;
  unsigned drawn_ = 0;
  int factor_ = 1;
};

}  // namespace cusim
