// What was counted, and what is alive.
#include "cusim.h"
#include "runtime/device_api.h"
#include "runtime/tally.h"

namespace cusim {

namespace {

constinit Tally counters;
constinit Tally ledger;

}  // namespace

void count(const char* name, std::uint64_t by) {
  counters[name].fetch_add(static_cast<std::int64_t>(by), std::memory_order_relaxed);
}

void account(const char* kind, std::int64_t by) {
  ledger[kind].fetch_add(by, std::memory_order_relaxed);
}

}  // namespace cusim

std::uint64_t cusim_counter(const char* name) {
  return static_cast<std::uint64_t>(cusim::counters[name].load(std::memory_order_relaxed));
}

void cusim_reset_counters() {
  cusim::counters.reset();
}

std::size_t cusim_ledger(cusim_tally* out, std::size_t room) {
  return cusim::ledger.list(out, room);
}
