#include "fuzz/harness.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <sys/mman.h>
#include <unistd.h>

#include "lockstep/core/error.h"

// AddressSanitizer's; null in other builds.
extern "C" __attribute__((weak)) int __sanitizer_install_malloc_and_free_hooks(
    void (*malloc_hook)(const volatile void*, std::size_t),
    void (*free_hook)(const volatile void*));

/// What AddressSanitizer does unless ASAN_OPTIONS says otherwise: an input's own memory fits such a
/// quarantine, and stacks of allocations, kept for every one, are wanted only of a finding that is
/// tried again (malloc_context_size=30).
extern "C" const char* __asan_default_options() {
  return "quarantine_size_mb=8:malloc_context_size=0";
}

namespace lockstep::fuzz {

namespace {

/// A message beyond this was made from what the file says.
constexpr std::size_t kLongestMessage = 2000;

std::atomic<std::size_t> largest{0};

void note_allocation(const volatile void* /*memory*/, std::size_t bytes) {
  if (bytes > largest.load(std::memory_order_relaxed)) {
    largest.store(bytes, std::memory_order_relaxed);
  }
}

void watch_allocations() {
  static const bool watching = [] {
    if (__sanitizer_install_malloc_and_free_hooks == nullptr) return false;
    return __sanitizer_install_malloc_and_free_hooks(note_allocation,
                                                     [](const volatile void*) {}) != 0;
  }();
  static_cast<void>(watching);
}

void check_message(const std::string& text) {
  require(!text.empty(), "an error without a message");
  require(text.size() <= kLongestMessage, "an error with a message as long as the file wants it");
  require(std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; }),
          "an error with a message that holds bytes of the file as they are");
}

}  // namespace

void require(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "harness: %s\n", what);
  std::abort();
}

MemoryFile::MemoryFile()
    : handle_(memfd_create("fuzz", MFD_CLOEXEC)),
      path_("/proc/self/fd/" + std::to_string(handle_)) {
  require(handle_ >= 0, "memfd_create failed");
}

MemoryFile::~MemoryFile() {
  ::close(handle_);
}

void MemoryFile::put(Bytes bytes) {
  require(::ftruncate(handle_, 0) == 0, "ftruncate failed");
  const ssize_t written = ::pwrite(handle_, bytes.data(), bytes.size(), 0);
  require(written == static_cast<ssize_t>(bytes.size()), "pwrite failed");
}

void judge(std::size_t file_bytes, MemoryLimit limit, const std::function<void()>& read) {
  watch_allocations();
  largest = 0;
  try {
    read();
  } catch (const Error& error) {
    check_message(error.what());
  }
  const std::size_t most = limit.bytes + limit.bytes_per_byte * file_bytes;
  if (largest > most) {
    std::fprintf(stderr, "harness: %zu bytes allocated at once for a file of %zu, at most %zu\n",
                 largest.load(), file_bytes, most);
    std::abort();
  }
}

}  // namespace lockstep::fuzz
