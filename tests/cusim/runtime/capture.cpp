#include "runtime/capture.h"

#include <algorithm>
#include <list>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "runtime/graph.h"

namespace cusim {

/// A capture in progress.
struct Capture {
  std::uint64_t id;
  Stream* origin;
  cudaStreamCaptureMode mode;
  std::thread::id thread;  ///< that began it
  CUgraph_st graph{};
  bool invalid = false;
  /// By stream that takes part: the nodes that its next one depends on.
  std::map<Stream*, std::vector<std::size_t>> tips{};
};

namespace {

/// Guards all captures. No launch takes it unless something is capturing.
std::mutex& capture_mutex() {
  static std::mutex& only = *new std::mutex;
  return only;
}

std::list<Capture>& captures() {
  static std::list<Capture>& all = *new std::list<Capture>;
  return all;
}

/// How many there are, to ask without the lock.
std::atomic<int> capture_count{0};

thread_local cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

/// The capture a stream takes part in; null when none. The lock is held.
Capture* capture_of(const Stream& stream) {
  return stream.capture.load(std::memory_order_relaxed);
}

Capture& valid_capture_of(const Stream& stream) {
  Capture* capture = capture_of(stream);
  require(capture != nullptr, cudaErrorIllegalState);
  require(!capture->invalid, cudaErrorStreamCaptureInvalidated);
  return *capture;
}

/// Invalidates every capture that `offended` picks; fails with `code` if there is one.
template <class Predicate>
void forbid(cudaError_t code, Predicate offended) {
  if (capture_count.load(std::memory_order_relaxed) == 0) return;
  const std::lock_guard lock(capture_mutex());
  bool any = false;
  for (Capture& capture : captures()) {
    if (!offended(capture)) continue;
    capture.invalid = true;
    any = true;
  }
  require(!any, code);
}

/// Whether work of another stream is left that the origin does not wait for. The lock is held.
bool has_unjoined_work(const Capture& capture) {
  std::vector<bool> joined(capture.graph.nodes.size());
  std::vector<std::size_t> pending = capture.tips.at(capture.origin);
  while (!pending.empty()) {
    const std::size_t node = pending.back();
    pending.pop_back();
    if (joined[node]) continue;
    joined[node] = true;
    const auto& before = capture.graph.nodes[node].dependencies;
    pending.insert(pending.end(), before.begin(), before.end());
  }
  return std::any_of(capture.tips.begin(), capture.tips.end(), [&](const auto& member) {
    const auto& [stream, tips] = member;
    return std::any_of(tips.begin(), tips.end(), [&](std::size_t node) { return !joined[node]; });
  });
}

/// Ends a capture; its streams are free again. The lock is held.
void remove(Capture& capture) {
  for (const auto& [stream, tips] : capture.tips) stream->capture = nullptr;
  captures().remove_if([&](const Capture& other) { return &other == &capture; });
  --capture_count;
  account("captures", -1);
}

}  // namespace

void capture_operation(Stream& stream, Operation operation) {
  const std::lock_guard lock(capture_mutex());
  Capture& capture = valid_capture_of(stream);
  std::vector<std::size_t>& tips = capture.tips[&stream];
  capture.graph.nodes.push_back({std::move(operation), stream.device(), tips});
  tips = {capture.graph.nodes.size() - 1};
}

CapturedPoint capture_point(Stream& stream) {
  const std::lock_guard lock(capture_mutex());
  Capture& capture = valid_capture_of(stream);
  return {capture.id, capture.tips[&stream]};
}

void capture_wait(Stream& stream, const CapturedPoint& point) {
  const std::lock_guard lock(capture_mutex());
  const auto found = std::find_if(captures().begin(), captures().end(),
                                  [&](const Capture& other) { return other.id == point.capture; });
  require(found != captures().end(), cudaErrorCapturedEvent);
  Capture& capture = *found;
  require(!capture.invalid, cudaErrorStreamCaptureInvalidated);
  Capture* joined = capture_of(stream);
  if (stream.legacy()) {
    capture.invalid = true;
    fail(cudaErrorStreamCaptureImplicit);
  }
  if (joined && joined != &capture) {
    joined->invalid = capture.invalid = true;
    fail(cudaErrorStreamCaptureMerge);
  }
  stream.capture = &capture;
  std::vector<std::size_t>& tips = capture.tips[&stream];
  for (const std::size_t node : point.nodes) {
    if (std::find(tips.begin(), tips.end(), node) == tips.end()) tips.push_back(node);
  }
}

void leave_capture(Stream& stream) {
  const std::lock_guard lock(capture_mutex());
  Capture* capture = capture_of(stream);
  if (!capture) return;
  capture->invalid = true;
  if (capture->origin == &stream) return remove(*capture);
  capture->tips.erase(&stream);
}

void invalidate_capture(std::uint64_t id) {
  const std::lock_guard lock(capture_mutex());
  for (Capture& capture : captures()) capture.invalid |= capture.id == id;
}

void forbid_while_capturing() {
  if (thread_mode == cudaStreamCaptureModeRelaxed) return;
  forbid(cudaErrorStreamCaptureUnsupported, [](const Capture& capture) {
    if (capture.thread == std::this_thread::get_id()) {
      return capture.mode != cudaStreamCaptureModeRelaxed;
    }
    return capture.mode == cudaStreamCaptureModeGlobal &&
           thread_mode == cudaStreamCaptureModeGlobal;
  });
}

void forbid_legacy_stream(int device) {
  forbid(cudaErrorStreamCaptureImplicit, [device](const Capture& capture) {
    return std::any_of(capture.tips.begin(), capture.tips.end(), [device](const auto& member) {
      return member.first->device() == device && member.first->blocking();
    });
  });
}

void forbid_observing(Stream& stream) {
  forbid(cudaErrorStreamCaptureUnsupported,
         [&stream](const Capture& capture) { return capture.tips.contains(&stream); });
  if (stream.legacy()) forbid_legacy_stream(stream.device());
  forbid_while_capturing();
}

void forbid_observing_device(int device) {
  forbid(cudaErrorStreamCaptureUnsupported, [device](const Capture& capture) {
    return std::any_of(capture.tips.begin(), capture.tips.end(),
                       [device](const auto& member) { return member.first->device() == device; });
  });
  forbid_while_capturing();
}

void forbid_outside_dependency(Stream& stream) {
  forbid(cudaErrorStreamCaptureIsolation,
         [&stream](const Capture& capture) { return capture.tips.contains(&stream); });
}

}  // namespace cusim

using namespace cusim;

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  return api("cudaStreamBeginCapture", [&] {
    Stream& stream = resolve(handle);
    require(!stream.legacy(), cudaErrorStreamCaptureUnsupported);
    raise_if_failed(stream.device());
    static std::uint64_t last_id = 0;
    const std::lock_guard lock(capture_mutex());
    require(!capture_of(stream), cudaErrorIllegalState);
    captures().push_back({.id = ++last_id,
                          .origin = &stream,
                          .mode = mode,
                          .thread = std::this_thread::get_id(),
                          .tips = {{&stream, {}}}});
    stream.capture = &captures().back();
    ++capture_count;
    account("captures", 1);
  });
}

/// Ends the capture whatever comes out.
cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  return result_of([&] {
    require_callable();
    int injected = 0;
    const bool fails = fault("cudaStreamEndCapture", &injected);
    *graph = nullptr;
    Stream& stream = resolve(handle);
    const std::lock_guard lock(capture_mutex());
    Capture* capture = capture_of(stream);
    require(capture != nullptr, cudaErrorIllegalState);
    require(capture->origin == &stream, cudaErrorStreamCaptureUnmatched);
    require(capture->mode == cudaStreamCaptureModeRelaxed ||
                capture->thread == std::this_thread::get_id(),
            cudaErrorStreamCaptureWrongThread);
    const bool invalid = capture->invalid;
    const bool unjoined = has_unjoined_work(*capture);
    if (!invalid && !unjoined && !fails) *graph = give_out(std::move(capture->graph));
    remove(*capture);
    require(!fails, static_cast<cudaError_t>(injected));
    require(!invalid, cudaErrorStreamCaptureInvalidated);
    require(!unjoined, cudaErrorStreamCaptureUnjoined);
  });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  return api("cudaStreamIsCapturing", [&] {
    Stream& stream = resolve(handle);
    if (stream.legacy()) forbid_legacy_stream(stream.device());
    const std::lock_guard lock(capture_mutex());
    const Capture* capture = capture_of(stream);
    *status = !capture           ? cudaStreamCaptureStatusNone
              : capture->invalid ? cudaStreamCaptureStatusInvalidated
                                 : cudaStreamCaptureStatusActive;
  });
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return api("cudaThreadExchangeStreamCaptureMode", [&] { std::swap(thread_mode, *mode); });
}
