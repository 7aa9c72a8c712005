#include "runtime/fiber.h"

#include <cstdint>
#include <new>

#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace cusim {

namespace {

constexpr std::size_t kGuardBytes = 4096;
constexpr std::size_t kStackBytes = 256 << 10;

}  // namespace

/// Saves the callee's registers and the stack pointer to *from, and goes on at `to`.
extern "C" void cusim_switch_stack(void** from, void* to);

asm(R"(
.text
.globl cusim_switch_stack
.hidden cusim_switch_stack
.type cusim_switch_stack,@function
cusim_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size cusim_switch_stack, .-cusim_switch_stack
)");

Context::Context(void (*entry)(), [[maybe_unused]] bool apart) : stack_bytes_(kStackBytes) {
  mapping_ = mmap(nullptr, kGuardBytes + kStackBytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping_ == MAP_FAILED) throw std::bad_alloc();
  mprotect(mapping_, kGuardBytes, PROT_NONE);
  std::byte* bottom = static_cast<std::byte*>(mapping_) + kGuardBytes;
  stack_bottom_ = bottom;
  // What cusim_switch_stack pops: six registers, then entry as the address to return to, with the
  // stack aligned as after a call.
  constexpr std::size_t kRegisters = 6;
  auto** top = reinterpret_cast<void**>(bottom + kStackBytes - 64);
  *--top = nullptr;
  *--top = reinterpret_cast<void*>(entry);
  for (std::size_t i = 0; i < kRegisters; ++i) *--top = nullptr;
  stack_pointer_ = top;
#if defined(CUSIM_TSAN)
  if (apart) tsan_fiber_ = __tsan_create_fiber(0);
#endif
}

Context::~Context() {
  if (!mapping_) return;
#if defined(CUSIM_TSAN)
  if (tsan_fiber_) __tsan_destroy_fiber(tsan_fiber_);
#endif
#if defined(__SANITIZE_ADDRESS__)
  // entry() never returns, so its marks are still there, and those of a kernel that failed: whoever
  // is given these addresses next must not meet them.
  __asan_unpoison_memory_region(stack_bottom_, stack_bytes_);
#endif
  munmap(mapping_, kGuardBytes + kStackBytes);
}

void Context::adopt_thread() {
#if defined(CUSIM_TSAN)
  tsan_fiber_ = __tsan_get_current_fiber();
#endif
}

void Context::switch_to(Context& to, [[maybe_unused]] bool apart) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&fake_stack_, to.stack_bottom_, to.stack_bytes_);
#endif
#if defined(CUSIM_TSAN)
  constexpr unsigned kNoOrder = 1;
  if (apart) __tsan_switch_to_fiber(to.tsan_fiber_, kNoOrder);
#endif
  cusim_switch_stack(&stack_pointer_, to.stack_pointer_);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake_stack_, nullptr, nullptr);
#endif
}

void Context::arrive([[maybe_unused]] Context& from) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &from.stack_bottom_, &from.stack_bytes_);
#endif
}

}  // namespace cusim
