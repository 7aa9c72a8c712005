// The threads of a block as fibers, so that they can stand at barriers and warp collectives. A
// fiber runs thread after thread until one blocks: kernels without barriers cost one switch per
// block. Compiled without -fsanitize=thread (fiber.h).
#pragma once

#include <cstdlib>
#include <exception>
#include <memory>
#include <vector>

#include "runtime/fiber.h"
#include "runtime/kernel_api.h"

namespace cusim {

inline constexpr unsigned kMaxThreads = 1024;
inline constexpr unsigned kWarpSize = 32;
inline constexpr int kLaunchFailure = 719;

struct Fiber {
  Fiber(void (*entry)(), bool apart) : context(entry, apart) {}

  Context context;
  Thread* thread = nullptr;  ///< the one that runs or waits on it
};

/// Runs the blocks of a grid one after another.
class Scheduler : public Block {
 public:
  Scheduler();

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
  void release_barrier();
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

}  // namespace cusim
