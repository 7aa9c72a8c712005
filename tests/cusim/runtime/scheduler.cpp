#include "runtime/scheduler.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <sstream>
#include <utility>

namespace cusim {

constinit thread_local Thread* current_thread = nullptr;
constinit thread_local Block* current_block = nullptr;

namespace {

/// The order in which blocks run: from `first` on in steps that meet every block once.
struct BlockOrder {
  std::uint64_t first, step;
};

/// Row by row without a seed, else an order that depends on it.
BlockOrder block_order(std::uint64_t count, unsigned seed) {
  if (seed == 0) return {0, 1};
  const std::uint64_t random = seed * std::uint64_t{6364136223846793005} + 1442695040888963407;
  std::uint64_t step = 1 + (random >> 33) % count;
  while (std::gcd(step, count) != 1) ++step;
  return {(random >> 17) % count, step % count};
}

/// CUSIM_RACECHECK=1 with ThreadSanitizer: threads of a block are ordered by barriers and warp
/// collectives alone, so a missing one is a data race.
bool race_check() {
#if defined(CUSIM_TSAN)
  static const bool on = [] {
    const char* text = std::getenv("CUSIM_RACECHECK");
    return text && std::atoi(text) != 0;
  }();
  return on;
#else
  return false;
#endif
}

}  // namespace

Scheduler::Scheduler() {
  // Fibers must not allocate: ThreadSanitizer sees allocations of this file too.
  for (std::vector<Fiber*>* list : {&idle_, &ready_}) list->reserve(kMaxThreads);
  at_barrier_.reserve(kMaxThreads);
}

void Scheduler::start(const LaunchContext& context, std::size_t bytes, void (*body)(void*),
                      void* argument) {
  launch = &context;
  body_ = body;
  argument_ = argument;
  void* memory = nullptr;
  if (posix_memalign(&memory, 256, std::max<std::size_t>(bytes, 1)) != 0) throw std::bad_alloc();
  shared_memory_.reset(static_cast<std::byte*>(memory));
  shared = shared_memory_.get();
  shared_bytes = bytes;
  const Dim3 size = context.block;
  thread_count = size.x * size.y * size.z;
  for (unsigned i = 0; i < thread_count; ++i) {
    threads_[i] = {.index = {i % size.x, i / size.x % size.y, i / (size.x * size.y)},
                   .linear = i,
                   .lane = i % kWarpSize,
                   .warp = &warps_[i / kWarpSize],
                   .block = this,
                   .fiber = nullptr};
    order_[i] = i;
  }
  host_.adopt_thread();
}

void Scheduler::run_block(Dim3 block_index) {
  index = block_index;
  std::memset(shared, 0xff, shared_bytes);
  next_ = finished_ = barrier_count_ = 0;
  for (Warp& warp : warps_) warp.waiting = 0;
  if (launch->seed != 0) shuffle_order();
  current_block = this;
  block_start_.release();
  while (!error_ && (next_ < thread_count || !ready_.empty())) {
    if (next_ < thread_count) {
      resume(fiber_for_next_thread());
    } else {
      Fiber* fiber = ready_.back();
      ready_.pop_back();
      resume(fiber);
    }
  }
  block_end_.acquire();
  current_thread = nullptr;
  current_block = nullptr;
  if (error_) std::rethrow_exception(error_);
  if (finished_ < thread_count) report_deadlock();
}

void Scheduler::shuffle_order() {
  unsigned random = launch->seed * 7919u + index.x * 31u + index.y * 17u + index.z + 1u;
  for (unsigned i = thread_count; i > 1; --i) {
    random = random * 1664525u + 1013904223u;
    std::swap(order_[i - 1], order_[(random >> 8) % i]);
  }
}

Fiber* Scheduler::fiber_for_next_thread() {
  Fiber*& own = fiber_of_thread_[order_[next_]];
  if (race_check() && own) return own;
  if (!race_check() && !idle_.empty()) {
    Fiber* fiber = idle_.back();
    idle_.pop_back();
    return fiber;
  }
  fibers_.push_back(std::make_unique<Fiber>(&entry, race_check()));
  return own = fibers_.back().get();
}

void Scheduler::resume(Fiber* fiber) {
  running_ = fiber;
  current_thread = fiber->thread;
  host_.switch_to(fiber->context, race_check());
}

void Scheduler::pause(Fiber* fiber) {
  fiber->context.switch_to(host_, race_check());
}

/// What a fiber does as long as it lives.
void Scheduler::entry() {
  auto* scheduler = static_cast<Scheduler*>(current_block);
  Fiber* fiber = scheduler->running_;
  Context::arrive(scheduler->host_);
  for (;;) {
    try {
      scheduler->run_threads(fiber);
    } catch (...) {
      if (!scheduler->error_) scheduler->error_ = std::current_exception();
    }
    fiber->thread = nullptr;
    if (!race_check()) scheduler->idle_.push_back(fiber);
    scheduler->pause(fiber);
  }
}

void Scheduler::run_threads(Fiber* fiber) {
  block_start_.acquire();
  while (next_ < thread_count && !error_) {
    Thread* thread = &threads_[order_[next_++]];
    fiber->thread = current_thread = thread;
    thread->fiber = fiber;
    body_(argument_);
    ++finished_;
    block_end_.release();
    if (!at_barrier_.empty() && at_barrier_.size() + finished_ == thread_count) release_barrier();
    if (race_check()) return;
  }
}

void Scheduler::report_deadlock() const {
  std::ostringstream text;
  text << "deadlock in block (" << index.x << "," << index.y << "," << index.z << "): " << finished_
       << " of " << thread_count << " threads have finished, " << at_barrier_.size()
       << " wait at __syncthreads, the rest at a warp collective whose lanes do not all arrive";
  throw KernelError{kLaunchFailure, text.str()};
}

void run_grid(const LaunchContext& launch, std::size_t shared_bytes, void (*body)(void*),
              void* argument) {
  // Fibers are kept for the next launch; an aborted block leaves some half-way, so it drops them.
  static thread_local std::unique_ptr<Scheduler> kept;
  std::unique_ptr<Scheduler> scheduler = std::move(kept);
  if (!scheduler) scheduler = std::make_unique<Scheduler>();
  scheduler->start(launch, shared_bytes, body, argument);
  const std::uint64_t width = launch.grid.x;
  const std::uint64_t area = width * launch.grid.y;
  const std::uint64_t count = area * launch.grid.z;
  const BlockOrder order = block_order(count, launch.seed);
  std::uint64_t block = order.first;
  for (std::uint64_t ran = 0; ran < count; ++ran, block = (block + order.step) % count) {
    scheduler->run_block({static_cast<unsigned>(block % width),
                          static_cast<unsigned>(block % area / width),
                          static_cast<unsigned>(block / area)});
  }
  kept = std::move(scheduler);
}

}  // namespace cusim
