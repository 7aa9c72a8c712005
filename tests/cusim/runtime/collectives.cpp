// Barriers and warp collectives of the running block.
#include <utility>

#include "runtime/scheduler.h"

namespace cusim {

unsigned Scheduler::barrier_of_current(bool predicate) {
  Thread* thread = current_thread;
  barrier_arrive_.release();
  barrier_count_ += predicate ? 1 : 0;
  if (at_barrier_.size() + 1 + finished_ == thread_count) {
    release_barrier();
  } else {
    at_barrier_.push_back(thread);
    pause(thread->fiber);
    current_thread = thread;
  }
  barrier_leave_.acquire();
  return barrier_result_;
}

void Scheduler::release_barrier() {
  barrier_result_ = std::exchange(barrier_count_, 0);
  barrier_arrive_.acquire();
  barrier_leave_.release();
  for (Thread* thread : at_barrier_) ready_.push_back(thread->fiber);
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

unsigned Block::barrier(bool predicate) {
  return static_cast<Scheduler*>(this)->barrier_of_current(predicate);
}

std::uint64_t Block::warp(WarpOperation operation, std::uint32_t mask, std::uint64_t value,
                          unsigned source) {
  return static_cast<Scheduler*>(this)->warp_of_current(operation, mask, value, source);
}

}  // namespace cusim
