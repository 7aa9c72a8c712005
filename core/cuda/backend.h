// What core asks of CUDA. No CUDA type: builds without the toolkit compile the callers too.
// Internal.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/core/device.h"
#include "lockstep/core/diagnostics.h"

namespace lockstep {
class BackendState;
class Context;
}  // namespace lockstep

namespace lockstep::cuda {

// --- devices ---

/// GPUs that can be used, or why there are none: one clause for a message, empty when there are.
struct Found {
  int count = 0;
  std::string reason{};
};
[[nodiscard]] Found find_devices();
/// Why this build cannot run on a device (there is none of this index, no code for it, ...), as a
/// clause; empty when it can.
[[nodiscard]] std::string why_unusable(Device device);
/// Throws DeviceError with why_unusable().
void check_device(Device device);
[[nodiscard]] DeviceInfo query_device(Device device);

/// The current device of the calling thread, and setting it. Setting throws DeviceError.
[[nodiscard]] int current_device();
void set_current_device(int index);
/// The same for destructors: a failure goes to UnheardErrors.
void restore_current_device(int index) noexcept;

/// "13.0" of 13000.
[[nodiscard]] std::string version_text(int version);
/// As in core/diagnostics.h.
[[nodiscard]] LibraryVersion runtime_library();
[[nodiscard]] std::string driver_version();
[[nodiscard]] DeviceState query_state(Device device);
[[nodiscard]] PeerCopy check_peer_copy(Device from, Device to);

// --- memory ---

/// Zeroed device memory. Throws DeviceError naming `purpose`, the bytes and what is free.
[[nodiscard]] std::byte* allocate(Device device, std::size_t bytes, const std::string& purpose);
void release(Device device, std::byte* memory) noexcept;
/// Zeroed page-locked host memory that every device can read.
[[nodiscard]] std::byte* allocate_pinned(Device device, std::size_t bytes,
                                         const std::string& purpose);
void release_pinned(Device device, std::byte* memory) noexcept;
[[nodiscard]] std::byte* mapped_pointer(Device device, std::byte* pinned);
[[nodiscard]] std::size_t free_bytes(Device device);

// --- streams, events, graphs ---

[[nodiscard]] std::unique_ptr<BackendState> make_stream(Device device);
void synchronize(const Context& context);
void copy_to_device(const Context& context, void* to, const void* from, std::size_t bytes);
void copy_to_host(const Context& context, void* to, const void* from, std::size_t bytes);

[[nodiscard]] std::unique_ptr<BackendState> make_event(Device device);
void record_event(const BackendState& event, const Context& context);
void wait_for_event(const BackendState& event, const Context& context);
[[nodiscard]] bool event_is_done(const BackendState& event);

/// Captures what `work` gives to the context's stream, and what joins it.
[[nodiscard]] std::unique_ptr<BackendState> capture(const Context& context,
                                                    const std::function<void()>& work);
void launch_graph(const BackendState& graph, const Context& context);
[[nodiscard]] std::size_t graph_nodes(const BackendState& graph);

// --- ranges ---

void push_range(const char* name);
void pop_range() noexcept;

}  // namespace lockstep::cuda
