// Which buffers of a plan may share memory: those that are never needed at the same time. Internal.
#pragma once

#include <cstddef>
#include <vector>

namespace lockstep {

/// Values that live for a while, placed in one piece of memory. A pure function of what was added.
class MemoryMap {
 public:
  /// A value of `bytes` that is needed at `time`; returns its number.
  int add(std::size_t bytes, int time);
  /// The value is needed at `time` as well, and at all times between.
  void use(int value, int time);
  /// Gives every value its place, aligned to kAlignment: the largest first, each at the lowest
  /// offset where it meets no placed value of an overlapping life.
  void place();

  [[nodiscard]] std::size_t offset(int value) const { return at(value).offset; }
  [[nodiscard]] std::size_t bytes(int value) const { return at(value).bytes; }
  /// Bytes of memory in all, after place().
  [[nodiscard]] std::size_t size() const { return size_; }
  /// Number of values.
  [[nodiscard]] int values() const { return static_cast<int>(values_.size()); }
  /// True when there is a time at which both are needed.
  [[nodiscard]] bool overlap_in_time(int a, int b) const;

 private:
  struct Value {
    std::size_t bytes = 0;
    int first = 0;
    int last = 0;
    std::size_t offset = 0;
  };
  [[nodiscard]] const Value& at(int value) const {
    return values_[static_cast<std::size_t>(value)];
  }

  std::vector<Value> values_;
  std::size_t size_ = 0;
};

}  // namespace lockstep
