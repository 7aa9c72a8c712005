// Counters and injected faults. Both are read on every launch, so neither takes a lock there: a
// lock would order threads of the program under test and hide their races from ThreadSanitizer.
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "cusim.h"
#include "runtime/device_api.h"
#include "runtime/settings.h"

namespace cusim {

namespace {

struct Counter {
  std::atomic<const char*> name{nullptr};
  std::atomic<std::uint64_t> value{0};
};

/// Open addressing; names are never removed.
constinit std::array<Counter, 256> counters;

Counter& counter(const char* name) {
  std::size_t slot = std::hash<std::string_view>{}(name);
  for (std::size_t tried = 0; tried < counters.size(); ++tried, ++slot) {
    Counter& candidate = counters[slot % counters.size()];
    const char* owner = candidate.name.load(std::memory_order_acquire);
    if (!owner) {
      char* copy = strdup(name);
      if (candidate.name.compare_exchange_strong(owner, copy)) return candidate;
      std::free(copy);
    }
    if (std::strcmp(owner, name) == 0) return candidate;
  }
  report("more counters than the table holds: " + std::string(name));
  std::abort();
}

struct Fault {
  std::string point;
  long at;
  int code;
  long seen = 0;

  /// A point by its name, a kernel by a part of its name.
  [[nodiscard]] bool matches(std::string_view called) const {
    constexpr std::string_view kernel = "kernel:";
    if (!point.starts_with(kernel)) return called == point;
    return called.starts_with(kernel) &&
           called.find(point.substr(kernel.size()), kernel.size()) != called.npos;
  }
};

std::vector<Fault> parse_faults(const std::string& spec) {
  std::vector<Fault> faults;
  for (std::size_t begin = 0; begin < spec.size();) {
    const std::size_t end = std::min(spec.find(',', begin), spec.size());
    const std::string entry = spec.substr(begin, end - begin);
    const std::size_t equals = entry.rfind('=');
    const std::size_t at = entry.rfind('@', equals);
    if (equals == entry.npos || at == entry.npos) {
      report("fault '" + entry + "' is not of the form point@count=code");
      std::abort();
    }
    faults.push_back({entry.substr(0, at), std::atol(entry.c_str() + at + 1),
                      std::atoi(entry.c_str() + equals + 1)});
    begin = end + 1;
  }
  return faults;
}

struct Faults {
  Faults() {
    if (const char* spec = std::getenv("CUSIM_FAULT")) set(spec);
  }

  void set(const char* spec) {
    const std::lock_guard lock(mutex);
    list = parse_faults(spec);
    any.store(!list.empty(), std::memory_order_relaxed);
  }

  std::atomic<bool> any{false};
  std::mutex mutex;
  std::vector<Fault> list;
};

Faults& faults() {
  static Faults& all = *new Faults;
  return all;
}

}  // namespace

void count(const char* name, std::uint64_t by) {
  counter(name).value.fetch_add(by, std::memory_order_relaxed);
}

bool fault(const char* point, int* code) {
  Faults& all = faults();
  if (!all.any.load(std::memory_order_relaxed)) return false;
  const std::lock_guard lock(all.mutex);
  bool fails = false;
  for (Fault& entry : all.list) {
    if (entry.matches(point) && ++entry.seen == entry.at) {
      *code = entry.code;
      fails = true;
    }
  }
  return fails;
}

}  // namespace cusim

std::uint64_t cusim_counter(const char* name) {
  return cusim::counter(name).value.load(std::memory_order_relaxed);
}

void cusim_reset_counters() {
  for (cusim::Counter& counter : cusim::counters) counter.value = 0;
}

void cusim_set_fault(const char* spec) {
  cusim::faults().set(spec);
}
