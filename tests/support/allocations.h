// Counts allocations: an executable that links allocations.cpp has operator new replaced by one
// that counts.
#pragma once

#include <cstdint>

namespace lockstep::test {

/// Calls of any operator new in this process so far, on all threads.
[[nodiscard]] std::int64_t allocations() noexcept;

/// Allocations since it was made.
class AllocationCount {
 public:
  AllocationCount() noexcept : start_(allocations()) {}
  [[nodiscard]] std::int64_t count() const noexcept { return allocations() - start_; }

 private:
  std::int64_t start_;
};

}  // namespace lockstep::test
