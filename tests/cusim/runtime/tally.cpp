#include "runtime/tally.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/settings.h"

namespace cusim {

std::atomic<std::int64_t>& Tally::operator[](const char* name) {
  std::size_t slot = std::hash<std::string_view>{}(name);
  for (std::size_t tried = 0; tried < entries_.size(); ++tried, ++slot) {
    Entry& candidate = entries_[slot % entries_.size()];
    const char* owner = candidate.name.load(std::memory_order_acquire);
    if (!owner) {
      char* copy = strdup(name);
      if (candidate.name.compare_exchange_strong(owner, copy)) return candidate.value;
      std::free(copy);
    }
    if (std::strcmp(owner, name) == 0) return candidate.value;
  }
  report("more names than a table holds: " + std::string(name));
  std::abort();
}

void Tally::reset() {
  for (Entry& entry : entries_) entry.value.store(0, std::memory_order_relaxed);
}

std::size_t Tally::list(cusim_tally* out, std::size_t room) const {
  std::vector<cusim_tally> all;
  for (const Entry& entry : entries_) {
    if (const char* name = entry.name.load(std::memory_order_acquire)) {
      all.push_back({name, entry.value.load(std::memory_order_relaxed)});
    }
  }
  std::sort(all.begin(), all.end(), [](const cusim_tally& a, const cusim_tally& b) {
    return std::strcmp(a.name, b.name) < 0;
  });
  std::copy_n(all.begin(), std::min(room, all.size()), out);
  return all.size();
}

}  // namespace cusim
