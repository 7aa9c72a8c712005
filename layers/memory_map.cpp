#include "lockstep/layers/memory_map.h"

#include <algorithm>
#include <numeric>

#include "lockstep/core/buffer.h"

namespace lockstep {

namespace {
std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}
}  // namespace

int MemoryMap::add(std::size_t bytes, int time) {
  values_.push_back({.bytes = bytes, .first = time, .last = time, .offset = 0});
  return values() - 1;
}

void MemoryMap::use(int value, int time) {
  Value& used = values_[static_cast<std::size_t>(value)];
  used.first = std::min(used.first, time);
  used.last = std::max(used.last, time);
}

bool MemoryMap::overlap_in_time(int a, int b) const {
  return at(a).first <= at(b).last && at(b).first <= at(a).last;
}

void MemoryMap::place() {
  std::vector<int> order(values_.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return bytes(a) > bytes(b); });

  std::vector<int> placed;  // by offset
  size_ = 0;
  for (const int value : order) {
    std::size_t offset = 0;
    for (const int other : placed) {
      if (!overlap_in_time(value, other)) continue;
      if (offset + aligned(bytes(value)) <= at(other).offset) break;
      offset = std::max(offset, at(other).offset + aligned(bytes(other)));
    }
    values_[static_cast<std::size_t>(value)].offset = offset;
    size_ = std::max(size_, offset + aligned(bytes(value)));
    const auto behind = std::upper_bound(
        placed.begin(), placed.end(), offset,
        [&](std::size_t at_offset, int other) { return at_offset < at(other).offset; });
    placed.insert(behind, value);
  }
}

}  // namespace lockstep
