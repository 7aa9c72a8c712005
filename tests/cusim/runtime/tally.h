// Numbers by name. They are read and added to on every launch, so without a lock: a lock would
// order threads of the program under test and hide their races from ThreadSanitizer.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "cusim.h"

namespace cusim {

/// A table with a fixed number of places; names are never removed.
class Tally {
 public:
  /// The number of this name, 0 at first. Ends the program when the table is full.
  std::atomic<std::int64_t>& operator[](const char* name);
  /// All numbers back to 0.
  void reset();
  /// Fills `out` with up to `room` entries, sorted by name; returns how many there are.
  std::size_t list(cusim_tally* out, std::size_t room) const;

 private:
  struct Entry {
    std::atomic<const char*> name{nullptr};
    std::atomic<std::int64_t> value{0};
  };

  std::array<Entry, 512> entries_{};  ///< open addressing
};

}  // namespace cusim
