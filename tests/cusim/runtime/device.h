// The virtual devices.
#pragma once

#include <atomic>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <vector>

#include "runtime/memory.h"
#include "runtime/queue.h"

namespace cusim {

class Stream;

struct Device {
  explicit Device(int number) : index(number) {}

  /// The legacy default stream, made at its first use.
  Stream& legacy_stream();
  /// The legacy stream if it was used.
  [[nodiscard]] Stream* used_legacy_stream() const {
    return legacy_.load(std::memory_order_acquire);
  }

  void add(Stream& stream);
  void remove(Stream& stream);
  /// What was put so far on each stream (on each blocking one), without the legacy stream.
  std::vector<Ticket> tails(bool blocking_only);
  /// Waits for all work that was put on the device's streams so far.
  void wait_for_streams();

  const int index;
  DeviceMemory memory;
  std::atomic<int> sticky{0};  ///< the error of the first operation that failed

 private:
  std::atomic<Stream*> legacy_{nullptr};
  std::mutex legacy_mutex_;
  std::shared_mutex streams_mutex_;
  std::set<Stream*> streams_;
};

inline constexpr int kMaxThreadsPerBlock = 1024;
inline constexpr int kThreadsPerMultiprocessor = 2048;

/// Shared memory of a block without and with cudaFuncSetAttribute.
inline constexpr int kDefaultSharedBytes = 48 << 10;
int max_shared_bytes();

/// The device; throws Failure 101 when there is none of this number.
Device& device(int index);

}  // namespace cusim
