// What a translated function knows about the launch and the thread it runs for.
#pragma once

#include <cstdio>
#include <string>

#include "ptx/ptx_types.h"
#include "runtime/kernel_api.h"

namespace cusim::ptx {

/// One pointer per argument.
using Arguments = const void* const*;

inline u64 address_of(const void* pointer) {
  return reinterpret_cast<u64>(pointer);
}

/// One launch of a kernel, on the thread of its stream.
struct Launch {
  const LaunchContext& context;
  u64 dynamic_shared;  // where dynamic shared memory starts

  // The last allocations that were found good, so that most checks need no look-up.
  static constexpr int kKnown = 8;
  AddressRange known[kKnown] = {};
  unsigned next = 0;

  [[nodiscard]] u64 variable(u64 offset) const { return address_of(context.variables) + offset; }
};

/// One thread of a launch. Device functions get the frame of their caller.
struct Frame {
  Launch& launch;
  Block& block;
  Thread& thread;
};

/// A translated kernel or device function.
using Translated = void(const Frame& frame, Arguments arguments, void* result);

/// Runs a translated kernel for every thread of a launch.
template <Translated* kKernel, std::size_t kSharedBytes>
void run(const LaunchContext& context) {
  constexpr std::size_t kAlignment = 16;  // dynamic shared memory follows the static one
  constexpr std::size_t kDynamic = (kSharedBytes + kAlignment - 1) / kAlignment * kAlignment;
  Launch launch{.context = context, .dynamic_shared = kDynamic};
  run_grid(context, kDynamic + context.dynamic_shared_bytes, [&launch] {
    kKernel({launch, *current_block, *current_thread}, launch.context.arguments, nullptr);
  });
}

/// "kernel k, block (0,0,0), thread (1,0,0)", for messages.
inline std::string where(const Frame& frame) {
  char text[128];
  const Dim3 b = frame.block.index;
  const Dim3 t = frame.thread.index;
  std::snprintf(text, sizeof text, ", block (%u,%u,%u), thread (%u,%u,%u)", b.x, b.y, b.z, t.x, t.y,
                t.z);
  return std::string("kernel ") + frame.launch.context.kernel + text;
}

/// The cudaError_t of what a kernel can do wrong.
inline constexpr int kIllegalAddress = 700;
inline constexpr int kAssertFailed = 710;
inline constexpr int kMisalignedAddress = 716;
inline constexpr int kLaunchFailure = 719;

[[noreturn]] inline void trap(const Frame& frame) {
  throw KernelError{kLaunchFailure, "trap in " + where(frame)};
}

}  // namespace cusim::ptx
