// Definitions in the executable come before those of the C library, for libraries too.
#include "support/system_faults.h"

#include <cerrno>
#include <cstdarg>
#include <cstdio>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace lockstep::test {
namespace {

struct State {
  bool armed = false;
  int at = 0;
  Fault fault = Fault::refused;
  int error = 0;
  int calls = 0;
  bool happened = false;
  bool next_write_fails = false;
  Refusal refused = Refusal::none;
};

thread_local State state;

template <class F>
F* real(F* /*like*/, const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

/// Whether this call is the one that fails.
bool strikes() {
  if (!state.armed) return false;
  return state.calls++ == state.at;
}

/// Runs `call`, or what is to happen in its place.
template <class Call>
auto with_fault(const Call& call) -> decltype(call()) {
  if (!strikes()) return call();
  state.happened = true;
  if (state.fault == Fault::dies_before) _exit(9);
  if (state.fault == Fault::dies_after) {
    (void)call();
    _exit(9);
  }
  errno = state.error;
  return -1;
}

/// Sets errno where such calls are refused.
bool refuses(Refusal what) {
  if (state.refused != what) return false;
  errno = state.error;
  return true;
}

}  // namespace

SystemFault::SystemFault(int at, Fault fault, int error) {
  state = {};
  state.at = at;
  state.fault = fault;
  state.error = error;
  state.armed = true;
}

SystemFault::~SystemFault() {
  state.armed = false;
}

RefusingFileSystem::RefusingFileSystem(Refusal what, int error) {
  state = {};
  state.refused = what;
  state.error = error;
}

RefusingFileSystem::~RefusingFileSystem() {
  state.refused = Refusal::none;
}

bool SystemFault::happened() {
  return state.happened;
}

}  // namespace lockstep::test

using lockstep::test::real;
using lockstep::test::Refusal;
using lockstep::test::refuses;
using lockstep::test::state;
using lockstep::test::with_fault;

extern "C" {

int open(const char* path, int flags, ...) {
  std::va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  if ((flags & O_CREAT) != 0 && refuses(Refusal::make_file)) return -1;
  return with_fault([&] { return real(&open, "open")(path, flags, mode); });
}

ssize_t pread(int handle, void* bytes, size_t count, off_t offset) {
  return with_fault([&] { return real(&pread, "pread")(handle, bytes, count, offset); });
}

ssize_t write(int handle, const void* bytes, size_t count) {
  const auto call = [&](size_t part) { return real(&write, "write")(handle, bytes, part); };
  if (state.next_write_fails) {
    state.next_write_fails = false;
    errno = state.error;
    return -1;
  }
  if (state.armed && state.fault == lockstep::test::Fault::short_write && state.calls == state.at &&
      count > 1) {
    ++state.calls;
    state.happened = true;
    state.next_write_fails = true;
    return call(count / 2);
  }
  return with_fault([&] { return call(count); });
}

int fsync(int handle) {
  return with_fault([&] { return state.armed ? 0 : real(&fsync, "fsync")(handle); });
}

int close(int handle) {
  // A close that fails has closed all the same.
  const int result = real(&close, "close")(handle);
  return with_fault([&] { return result; });
}

int mkdir(const char* path, mode_t mode) noexcept {
  if (refuses(Refusal::make_folder)) return -1;
  return with_fault([&] { return real(&mkdir, "mkdir")(path, mode); });
}

int rename(const char* from, const char* to) noexcept {
  if (refuses(Refusal::rename)) return -1;
  return with_fault([&] { return real(&rename, "rename")(from, to); });
}
}
