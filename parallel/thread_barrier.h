// Where the threads of a communicator meet. Internal to this folder.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "lockstep/core/buffer.h"
#include "lockstep/core/device.h"

namespace lockstep {

/// A barrier whose one word holds the number of passes and, in its low bits, why no further pass
/// can begin.
class ThreadBarrier {
 public:
  static constexpr std::uint32_t kAborted = 1;
  static constexpr std::uint32_t kLeft = 2;

  explicit ThreadBarrier(int size) : size_(size), spins_(size <= cores() ? kSpins : 0) {}

  /// Returns 0 when all ranks are there, or the flags that keep them from ever being. The answer is
  /// the same for all ranks: the last to arrive passes only while no flag is set.
  [[nodiscard]] std::uint32_t open() { return pass(kAborted | kLeft); }

  /// Returns when all ranks are there, flags or not; all have passed open() and will come.
  void close() { static_cast<void>(pass(0)); }

  [[nodiscard]] std::uint32_t flags() const { return word_.load() & kFlags; }

  void raise(std::uint32_t flag) noexcept {
    word_.fetch_or(flag);
    word_.notify_all();
  }

 private:
  /// Tries before a waiting thread yields (some 30 us), and yields before it sleeps: to wake it
  /// takes as long as a tenth of a small step. Nobody spins where threads outnumber cores.
  static constexpr int kSpins = 20000;
  static constexpr int kYields = 100;
  static constexpr std::uint32_t kFlags = kAborted | kLeft;
  static constexpr std::uint32_t kPass = 4;

  /// Asked once: finding out reads files, and every run of a world makes a barrier.
  static int cores() {
    static const int count = allowed_cores();
    return count;
  }

  std::uint32_t pass(std::uint32_t heeded) {
    const std::uint32_t before = word_.load();
    if ((before & heeded) != 0) return before & heeded;
    // The pass cannot complete without this rank, so `before` names it until we have arrived.
    if (arrived_.fetch_add(1) + 1 == size_) {
      arrived_.store(0);
      std::uint32_t now = before;
      while ((now & heeded) == 0) {
        if (word_.compare_exchange_weak(now, now + kPass)) {
          word_.notify_all();
          return 0;
        }
      }
      return now & heeded;
    }
    return wait(before, heeded);
  }

  std::uint32_t wait(std::uint32_t before, std::uint32_t heeded) {
    for (int tries = 0;; ++tries) {
      const std::uint32_t now = word_.load();
      if (((now ^ before) & ~kFlags) != 0) return 0;
      if ((now & heeded) != 0) return now & heeded;
      if (tries < spins_) continue;
      if (tries < spins_ + kYields) {
        std::this_thread::yield();
      } else {
        word_.wait(now);
      }
    }
  }

  int size_;
  int spins_;
  alignas(kAlignment) std::atomic<std::uint32_t> word_{0};
  alignas(kAlignment) std::atomic<int> arrived_{0};
};

}  // namespace lockstep
