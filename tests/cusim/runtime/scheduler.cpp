// Runs a grid: the threads of a block are fibers, so that they can stand at barriers and warp
// collectives. A fiber runs thread after thread until one blocks: kernels without barriers cost one
// switch per block. Compiled without -fsanitize=thread (fiber.h).
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <sstream>
#include <utility>
#include <vector>

#include "runtime/fiber.h"
#include "runtime/kernel_api.h"

namespace cusim {

constinit thread_local Thread* current_thread = nullptr;
constinit thread_local Block* current_block = nullptr;

namespace {

constexpr unsigned kMaxThreads = 1024;
constexpr unsigned kWarpSize = 32;
constexpr int kLaunchFailure = 719;

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

struct Fiber {
  explicit Fiber(void (*entry)()) : context(entry) {}

  Context context;
  Thread* thread = nullptr;  ///< the one that runs or waits on it
};

namespace {

class Scheduler : public Block {
 public:
  void start(const LaunchContext& context, std::size_t bytes, void (*body)(void*), void* argument);
  void run_block(Dim3 block_index);

  unsigned barrier_of_current(bool predicate);
  std::uint64_t warp_of_current(WarpOperation operation, std::uint32_t mask, std::uint64_t value,
                                unsigned source);

 private:
  static void entry();

  void shuffle_order();
  Fiber* fiber_for_next_thread();
  void resume(Fiber* fiber);
  void pause(Fiber* fiber);
  void run_threads(Fiber* fiber);
  void release_barrier_if_full();
  void finish_collective(WarpOperation operation, Thread& last, std::uint32_t mask);
  [[noreturn]] void report_deadlock() const;

  void (*body_)(void*) = nullptr;
  void* argument_ = nullptr;
  std::unique_ptr<std::byte, decltype(&std::free)> shared_memory_{nullptr, &std::free};

  Thread threads_[kMaxThreads];
  Warp warps_[kMaxThreads / kWarpSize];
  unsigned order_[kMaxThreads];  ///< in which threads start
  unsigned next_ = 0;            ///< how many have started
  unsigned finished_ = 0;
  std::vector<Thread*> at_barrier_;
  unsigned barrier_count_ = 0;   ///< of true predicates so far
  unsigned barrier_result_ = 0;  ///< of the barrier released last
  std::exception_ptr error_;

  Context host_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;
  std::vector<Fiber*> ready_;  ///< their threads have been released
  std::vector<Fiber*> fiber_of_thread_ = std::vector<Fiber*>(kMaxThreads);  ///< race_check() only
  Fiber* running_ = nullptr;

  OrderPoint block_start_;
  OrderPoint block_end_;
  OrderPoint barrier_arrive_;
  OrderPoint barrier_leave_;
  OrderPoint warp_arrive_[kMaxThreads / kWarpSize];
  OrderPoint warp_leave_[kMaxThreads / kWarpSize];
};

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
                   .fiber = nullptr,
                   .released = false};
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
  fibers_.push_back(std::make_unique<Fiber>(&entry));
  return own = fibers_.back().get();
}

void Scheduler::resume(Fiber* fiber) {
  running_ = fiber;
  current_thread = fiber->thread;
  host_.switch_to(fiber->context, !race_check());
}

void Scheduler::pause(Fiber* fiber) {
  fiber->context.switch_to(host_, !race_check());
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
    release_barrier_if_full();
    if (race_check()) return;
  }
}

unsigned Scheduler::barrier_of_current(bool predicate) {
  Thread* thread = current_thread;
  barrier_arrive_.release();
  barrier_count_ += predicate ? 1 : 0;
  thread->released = false;
  at_barrier_.push_back(thread);
  release_barrier_if_full();
  if (thread->released) {
    std::erase(ready_, thread->fiber);
  } else {
    pause(thread->fiber);
  }
  current_thread = thread;
  barrier_leave_.acquire();
  return barrier_result_;
}

void Scheduler::release_barrier_if_full() {
  if (at_barrier_.empty() || at_barrier_.size() + finished_ < thread_count) return;
  barrier_result_ = std::exchange(barrier_count_, 0);
  barrier_arrive_.acquire();
  barrier_leave_.release();
  for (Thread* thread : at_barrier_) {
    thread->released = true;
    ready_.push_back(thread->fiber);
  }
  at_barrier_.clear();
}

std::uint64_t Scheduler::warp_of_current(WarpOperation operation, std::uint32_t mask,
                                         std::uint64_t value, unsigned source) {
  Thread* thread = current_thread;
  Warp& warp = *thread->warp;
  const std::size_t warp_index = thread->linear / kWarpSize;
  const std::uint32_t own = 1u << thread->lane;
  if (!(mask & own)) {
    throw KernelError{kLaunchFailure, "warp collective: the calling lane is not in its mask"};
  }
  warp_arrive_[warp_index].release();
  warp.value[thread->lane] = value;
  warp.mask[thread->lane] = mask;
  warp.source[thread->lane] = static_cast<std::uint8_t>(source);
  warp.waiting |= own;
  bool complete = (warp.waiting & mask) == mask;
  for (unsigned lane = 0; lane < kWarpSize && complete; ++lane) {
    if (mask >> lane & 1) complete = warp.mask[lane] == mask;
  }
  if (complete) {
    warp_arrive_[warp_index].acquire();
    finish_collective(operation, *thread, mask);
    warp_leave_[warp_index].release();
  } else {
    pause(thread->fiber);
    current_thread = thread;
  }
  warp_leave_[warp_index].acquire();
  return warp.result[thread->lane];
}

/// Computes all lanes' results and lets the others go on.
void Scheduler::finish_collective(WarpOperation operation, Thread& last, std::uint32_t mask) {
  Warp& warp = *last.warp;
  std::uint32_t ballot = 0;
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    if ((mask >> lane & 1) && warp.value[lane] != 0) ballot |= 1u << lane;
  }
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    if (!(mask >> lane & 1)) continue;
    switch (operation) {
      case WarpOperation::shuffle:
        if (!(mask >> warp.source[lane] & 1)) {
          throw KernelError{kLaunchFailure, "shuffle: the source lane is not in the mask"};
        }
        warp.result[lane] = warp.value[warp.source[lane]];
        break;
      case WarpOperation::ballot:
        warp.result[lane] = ballot;
        break;
      case WarpOperation::any:
        warp.result[lane] = ballot != 0;
        break;
      case WarpOperation::all:
        warp.result[lane] = ballot == mask;
        break;
      case WarpOperation::sync:
        warp.result[lane] = 0;
        break;
    }
    Thread& thread = threads_[last.linear - last.lane + lane];
    if (&thread != &last) ready_.push_back(thread.fiber);
  }
  warp.waiting &= ~mask;
}

void Scheduler::report_deadlock() const {
  std::ostringstream text;
  text << "deadlock in block (" << index.x << "," << index.y << "," << index.z << "): " << finished_
       << " of " << thread_count << " threads have finished, " << at_barrier_.size()
       << " wait at __syncthreads, the rest at a warp collective whose lanes do not all arrive";
  throw KernelError{kLaunchFailure, text.str()};
}

}  // namespace

unsigned Block::barrier(bool predicate) {
  return static_cast<Scheduler*>(this)->barrier_of_current(predicate);
}

std::uint64_t Block::warp(WarpOperation operation, std::uint32_t mask, std::uint64_t value,
                          unsigned source) {
  return static_cast<Scheduler*>(this)->warp_of_current(operation, mask, value, source);
}

void run_grid(const LaunchContext& launch, std::size_t shared_bytes, void (*body)(void*),
              void* argument) {
  // Fibers are kept for the next launch; an aborted block leaves some half-way, so it drops them.
  static thread_local std::unique_ptr<Scheduler> kept;
  std::unique_ptr<Scheduler> scheduler = std::move(kept);
  if (!scheduler) scheduler = std::make_unique<Scheduler>();
  scheduler->start(launch, shared_bytes, body, argument);
  for (unsigned z = 0; z < launch.grid.z; ++z) {
    for (unsigned y = 0; y < launch.grid.y; ++y) {
      for (unsigned x = 0; x < launch.grid.x; ++x) scheduler->run_block({x, y, z});
    }
  }
  kept = std::move(scheduler);
}

}  // namespace cusim
