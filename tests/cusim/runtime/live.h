// Handles that were given out and not destroyed.
#pragma once

#include <mutex>
#include <set>
#include <shared_mutex>

#include "runtime/device_api.h"

namespace cusim {

/// All live handles of a kind; any other is refused. They are in the ledger. Lookups take the lock
/// shared: see AllocationMap.
template <class Handle>
class LiveHandles {
 public:
  explicit LiveHandles(const char* kind) : kind_(kind) {}

  Handle add(Handle handle) {
    const std::lock_guard lock(mutex_);
    live_.insert(handle);
    account(kind_, 1);
    return handle;
  }

  /// False when there is no such handle.
  [[nodiscard]] bool remove(Handle handle) {
    const std::lock_guard lock(mutex_);
    if (live_.erase(handle) == 0) return false;
    account(kind_, -1);
    return true;
  }

  [[nodiscard]] bool contains(Handle handle) const {
    const std::shared_lock lock(mutex_);
    return live_.contains(handle);
  }

 private:
  const char* kind_;
  mutable std::shared_mutex mutex_;
  std::set<Handle> live_;
};

}  // namespace cusim
