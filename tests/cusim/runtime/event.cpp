#include <utility>

#include "runtime/capture.h"
#include "runtime/stream.h"

using namespace cusim;

namespace {

LiveHandles<cudaEvent_t>& live_events() {
  static auto& all = *new LiveHandles<cudaEvent_t>("events");
  return all;
}

CUevent_st& resolve_event(cudaEvent_t event) {
  require(live_events().contains(event), cudaErrorInvalidResourceHandle);
  return *event;
}

/// The last record, for a host that looks at it: not one that is in a graph.
Ticket observed_ticket(CUevent_st& event) {
  const std::lock_guard lock(event.mutex);
  if (event.captured) {
    invalidate_capture(event.captured->capture);
    fail(cudaErrorCapturedEvent);
  }
  return event.ticket;
}

/// The time of the last record, which must have executed.
CUevent_st::Time recorded_time(CUevent_st& event) {
  const Ticket ticket = observed_ticket(event);
  const std::lock_guard lock(event.mutex);
  require(event.timed && event.time, cudaErrorInvalidResourceHandle);
  require(ticket.done(), cudaErrorNotReady);
  return *event.time;
}

}  // namespace

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return api("cudaEventCreateWithFlags", [&] {
    constexpr unsigned kKnown = cudaEventBlockingSync | cudaEventDisableTiming;
    require((flags & ~kKnown) == 0, cudaErrorInvalidValue);
    const bool timed = (flags & cudaEventDisableTiming) == 0;
    *event = live_events().add(new CUevent_st{.device = current_device(), .timed = timed});
  });
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return release_api("cudaEventDestroy", [&] {
    require(live_events().remove(event), cudaErrorInvalidResourceHandle);
    delete event;
  });
}

cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream_handle) {
  return api("cudaEventRecord", [&] {
    CUevent_st& event = resolve_event(handle);
    Stream& stream = resolve(stream_handle);
    require(event.device == stream.device(), cudaErrorInvalidResourceHandle);
    count("event_records");
    const std::lock_guard lock(event.mutex);
    if (stream.capture.load(std::memory_order_acquire)) {
      event.captured = capture_point(stream);
      return;
    }
    if (stream.legacy()) forbid_legacy_stream(stream.device());
    event.captured.reset();
    event.time = event.timed ? std::make_shared<CUevent_st::Time>() : nullptr;
    auto record = [time = event.time] {
      if (time) *time = std::chrono::steady_clock::now();
    };
    event.ticket = stream.push(
        {.kind = Kind::event, .name = "record", .run = std::move(record), .always = true});
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream_handle, cudaEvent_t handle, unsigned flags) {
  return api("cudaStreamWaitEvent", [&] {
    require(flags == cudaEventWaitDefault, cudaErrorNotSupported);
    CUevent_st& event = resolve_event(handle);
    Stream& stream = resolve(stream_handle);
    count("event_waits");
    const std::lock_guard lock(event.mutex);
    if (event.captured) return capture_wait(stream, *event.captured);
    forbid_outside_dependency(stream);
    if (!event.ticket.queue) return;  // never recorded: nothing to wait for
    submit(stream, {.kind = Kind::wait,
                    .name = "event",
                    .run = [ticket = event.ticket] { ticket.wait(); },
                    .always = true});
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  return api("cudaEventSynchronize", [&] {
    CUevent_st& event = resolve_event(handle);
    const Ticket ticket = observed_ticket(event);
    forbid_while_capturing();
    count("event_syncs");
    ticket.wait();
    raise_if_failed(event.device);
  });
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
  return api("cudaEventQuery", [&] {
    CUevent_st& event = resolve_event(handle);
    const Ticket ticket = observed_ticket(event);
    forbid_while_capturing();
    raise_if_failed(event.device);
    require(ticket.done(), cudaErrorNotReady);
    raise_if_failed(event.device);
  });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return api("cudaEventElapsedTime", [&] {
    const auto from = recorded_time(resolve_event(start));
    const auto to = recorded_time(resolve_event(end));
    *milliseconds = std::chrono::duration<float, std::milli>(to - from).count();
  });
}
