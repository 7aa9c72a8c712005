#include "runtime/stream.h"

#include <utility>

#include "runtime/capture.h"
#include "runtime/device.h"
#include "runtime/settings.h"

namespace cusim {

namespace {

LiveHandles<cudaStream_t>& live_streams() {
  static auto& all = *new LiveHandles<cudaStream_t>("streams");
  return all;
}

std::uint64_t next_stream_id() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

void tally(Kind kind) {
  switch (kind) {
    case Kind::kernel:
      count("calls");
      return count("launches");
    case Kind::library:
    case Kind::collective:
      count("calls");
      return count("library_calls");
    case Kind::memset:
      count("calls");
      return count("memsets");
    case Kind::memcpy:
      return count("memcpys");
    case Kind::graph:
      return count("graph_launches");
    case Kind::host:
      return count("host_functions");
    case Kind::event:
    case Kind::wait:
      return;  // counted at the call, for a capture has no node for them
  }
}

cudaError_t create(const char* function, cudaStream_t* stream, unsigned flags) {
  return api(function, [&] {
    require(flags == cudaStreamDefault || flags == cudaStreamNonBlocking, cudaErrorInvalidValue);
    raise_if_failed(current_device());
    *stream = live_streams().add(new CUstream_st(current_device(), flags, false));
  });
}

}  // namespace

Stream::Stream(int device_index, unsigned flags, bool legacy)
    : queue_(*new Queue(device_index, next_stream_id())), flags_(flags), legacy_(legacy) {
  if (!legacy) cusim::device(device_index).add(*this);
}

Stream::~Stream() {
  cusim::device(device()).remove(*this);
  queue_.stop();
}

/// The legacy stream follows all blocking streams, and they follow it.
void Stream::follow_legacy_rule() {
  if (!blocking()) return;
  std::vector<Ticket> before;
  if (legacy_) {
    before = cusim::device(device()).tails(true);
  } else if (Stream* legacy = cusim::device(device()).used_legacy_stream()) {
    const Ticket tail = legacy->tail();
    const std::lock_guard lock(legacy_mutex_);
    if (std::exchange(followed_, tail.number) < tail.number) before.push_back(tail);
  }
  if (before.empty()) return;
  const auto wait = [before = std::move(before)] {
    for (const Ticket& ticket : before) ticket.wait();
  };
  queue_.push({.kind = Kind::wait, .name = "legacy stream", .run = wait, .always = true});
}

Ticket Stream::push(Operation operation) {
  follow_legacy_rule();
  return queue_.push(std::move(operation));
}

Stream& resolve(cudaStream_t handle) {
  require(handle != cudaStreamPerThread, cudaErrorNotSupported);
  if (handle == nullptr || handle == cudaStreamLegacy) {
    return device(current_device()).legacy_stream();
  }
  require(live_streams().contains(handle), cudaErrorInvalidResourceHandle);
  return *handle;
}

void submit(Stream& stream, Operation operation) {
  const Kind kind = operation.kind;
  if (stream.capture.load(std::memory_order_acquire)) {
    capture_operation(stream, std::move(operation));
  } else {
    if (!operation.always) raise_if_failed(stream.device());
    if (stream.legacy()) forbid_legacy_stream(stream.device());
    stream.push(std::move(operation));
  }
  tally(kind);
}

void synchronize(Stream& stream) {
  stream.tail().wait();
  raise_if_failed(stream.device());
}

cudaError_t enqueue(cudaStream_t stream, Operation operation) {
  return result_of([&] {
    require_callable();
    submit(resolve(stream), std::move(operation));
  });
}

bool capturing(cudaStream_t stream) {
  return stream_device(stream) >= 0 &&
         resolve(stream).capture.load(std::memory_order_acquire) != nullptr;
}

int stream_device(cudaStream_t stream) {
  try {
    return resolve(stream).device();
  } catch (const Failure&) {
    return -1;
  }
}

}  // namespace cusim

using namespace cusim;

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return create("cudaStreamCreate", stream, cudaStreamDefault);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return create("cudaStreamCreateWithFlags", stream, flags);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  return create("cudaStreamCreateWithPriority", stream, flags);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return api("cudaDeviceGetStreamPriorityRange", [&] {
    *least = 0;
    *greatest = -5;
  });
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return release_api("cudaStreamDestroy", [&] {
    require(live_streams().remove(stream), cudaErrorInvalidResourceHandle);
    leave_capture(*stream);
    const int index = stream->device();
    delete stream;
    raise_if_failed(index);
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  return api("cudaStreamSynchronize", [&] {
    Stream& stream = resolve(handle);
    forbid_observing(stream);
    count("stream_syncs");
    synchronize(stream);
  });
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  return api("cudaStreamQuery", [&] {
    Stream& stream = resolve(handle);
    forbid_observing(stream);
    raise_if_failed(stream.device());
    require(stream.tail().done(), cudaErrorNotReady);
    raise_if_failed(stream.device());
  });
}

cudaError_t cudaStreamGetFlags(cudaStream_t handle, unsigned* flags) {
  return api("cudaStreamGetFlags", [&] { *flags = resolve(handle).flags(); });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void* argument) {
  return api("cudaLaunchHostFunc", [&] {
    submit(resolve(handle), {.kind = Kind::host,
                             .name = "host function",
                             .run = [function, argument] { function(argument); }});
  });
}
