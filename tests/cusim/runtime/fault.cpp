// Points, how often each was passed, and the faults that happen there.
#include <cstdlib>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "cusim.h"
#include "runtime/device_api.h"
#include "runtime/settings.h"
#include "runtime/tally.h"

namespace cusim {

namespace {

constinit Tally points;

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
    happened = 0;
    any.store(!list.empty(), std::memory_order_relaxed);
  }

  std::atomic<bool> any{false};
  std::mutex mutex;
  std::vector<Fault> list;
  std::uint64_t happened = 0;
};

Faults& faults() {
  static Faults& all = *new Faults;
  return all;
}

}  // namespace

bool fault(const char* point, int* code) {
  points[point].fetch_add(1, std::memory_order_relaxed);
  Faults& all = faults();
  if (!all.any.load(std::memory_order_relaxed)) return false;
  const std::lock_guard lock(all.mutex);
  bool fails = false;
  for (Fault& entry : all.list) {
    if (entry.matches(point) && ++entry.seen == entry.at) {
      *code = entry.code;
      fails = true;
      ++all.happened;
    }
  }
  return fails;
}

}  // namespace cusim

void cusim_set_fault(const char* spec) {
  cusim::faults().set(spec);
}

std::uint64_t cusim_faults_happened() {
  cusim::Faults& all = cusim::faults();
  const std::lock_guard lock(all.mutex);
  return all.happened;
}

std::size_t cusim_points(cusim_tally* out, std::size_t room) {
  return cusim::points.list(out, room);
}

void cusim_reset_points() {
  cusim::points.reset();
}
