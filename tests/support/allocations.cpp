#include "support/allocations.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::int64_t> calls{0};

void* take(std::size_t bytes) noexcept {
  calls.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(bytes == 0 ? 1 : bytes);
}

void* take(std::size_t bytes, std::align_val_t alignment) noexcept {
  calls.fetch_add(1, std::memory_order_relaxed);
  const auto multiple = static_cast<std::size_t>(alignment);
  const std::size_t whole = (bytes + multiple - 1) / multiple * multiple;
  return std::aligned_alloc(multiple, whole == 0 ? multiple : whole);
}

void* or_throw(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

std::int64_t lockstep::test::allocations() noexcept {
  return calls.load(std::memory_order_relaxed);
}

void* operator new(std::size_t bytes) {
  return or_throw(take(bytes));
}
void* operator new[](std::size_t bytes) {
  return or_throw(take(bytes));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return take(bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return take(bytes);
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return or_throw(take(bytes, alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return or_throw(take(bytes, alignment));
}
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return take(bytes, alignment);
}
void* operator new[](std::size_t bytes, std::align_val_t alignment,
                     const std::nothrow_t&) noexcept {
  return take(bytes, alignment);
}

void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, const std::nothrow_t&) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t, const std::nothrow_t&) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::align_val_t, const std::nothrow_t&) noexcept {
  std::free(memory);
}
