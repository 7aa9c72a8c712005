#include "runtime/trace.h"

#include <array>
#include <atomic>
#include <deque>
#include <mutex>
#include <string>

#include "cusim.h"

namespace cusim {

namespace {

struct Entry {
  int device;
  std::uint64_t stream;
  Kind kind;
  std::string name;
  std::uint64_t begin;
  std::uint64_t end;
};

struct Trace {
  std::atomic<bool> on{false};
  std::atomic<std::uint64_t> sequence{0};
  std::mutex mutex;
  std::deque<Entry> entries;  ///< texts keep their place
};

Trace& trace() {
  static Trace& only = *new Trace;
  return only;
}

/// In the order of Kind.
constexpr std::array kKindNames = {"kernel", "library", "collective", "memset", "memcpy",
                                   "host",   "event",   "wait",       "graph"};

}  // namespace

TraceSpan::TraceSpan(const Operation& operation, int device, std::uint64_t stream)
    : operation_(operation), device_(device), stream_(stream) {
  if (trace().on.load(std::memory_order_relaxed)) begin_ = ++trace().sequence;
}

TraceSpan::~TraceSpan() {
  if (begin_ == 0) return;
  const std::lock_guard lock(trace().mutex);
  trace().entries.push_back(
      {device_, stream_, operation_.kind, operation_.name, begin_, ++trace().sequence});
}

}  // namespace cusim

void cusim_trace_start() {
  const std::lock_guard lock(cusim::trace().mutex);
  cusim::trace().entries.clear();
  cusim::trace().on = true;
}

void cusim_trace_stop() {
  cusim::trace().on = false;
}

std::size_t cusim_trace_size() {
  const std::lock_guard lock(cusim::trace().mutex);
  return cusim::trace().entries.size();
}

int cusim_trace_get(std::size_t index, cusim_trace_entry* out) {
  const std::lock_guard lock(cusim::trace().mutex);
  if (index >= cusim::trace().entries.size()) return 0;
  const cusim::Entry& entry = cusim::trace().entries[index];
  *out = {entry.device,       entry.stream, cusim::kKindNames[static_cast<std::size_t>(entry.kind)],
          entry.name.c_str(), entry.begin,  entry.end};
  return 1;
}
