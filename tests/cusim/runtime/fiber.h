// Fibers: stacks of their own on one thread of the host, switched by hand, and known to
// AddressSanitizer and ThreadSanitizer. Users are compiled without -fsanitize=thread (CUSIM_TSAN
// says that the program has it), so that ThreadSanitizer sees kernels and not the scheduler.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

#if defined(CUSIM_TSAN)
extern "C" {
void* __tsan_get_current_fiber();
void* __tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void* fiber);
void __tsan_switch_to_fiber(void* fiber, unsigned flags);
void __tsan_acquire(void* address);
void __tsan_release(void* address);
}
#endif

namespace cusim {

/// A point that orders memory accesses for ThreadSanitizer: all before a release happen before all
/// after an acquire.
class OrderPoint {
 public:
  void release() {
#if defined(CUSIM_TSAN)
    __tsan_release(&place_);
#endif
  }

  void acquire() {
#if defined(CUSIM_TSAN)
    __tsan_acquire(&place_);
#endif
  }

 private:
  char place_ = 0;
};

/// A stack that can be switched to; made either around the host thread's own or with a new one.
class Context {
 public:
  /// The host thread's.
  Context() = default;
  /// A new one, which runs entry() at the first switch; entry never returns. `apart`:
  /// ThreadSanitizer takes it for a thread of its own. Then every switch costs as much as there are
  /// such threads; else it is the host's thread, whose calls are only shown out of order.
  Context(void (*entry)(), bool apart);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  /// Before a host thread's context is switched from: takes the thread's identity.
  void adopt_thread();

  /// Goes on in `to` until something switches back. `apart`, as one of the two was made:
  /// ThreadSanitizer sees two threads that know nothing of each other.
  void switch_to(Context& to, bool apart);

  /// First thing in entry(): `from` is the context that switched here.
  static void arrive(Context& from);

 private:
  void* stack_pointer_ = nullptr;
  void* mapping_ = nullptr;             ///< own stack, guard page first
  const void* stack_bottom_ = nullptr;  ///< for AddressSanitizer
  std::size_t stack_bytes_ = 0;
  [[maybe_unused]] void* fake_stack_ = nullptr;
  [[maybe_unused]] void* tsan_fiber_ = nullptr;
};

}  // namespace cusim
