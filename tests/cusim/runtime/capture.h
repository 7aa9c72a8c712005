// Stream capture, and what CUDA forbids meanwhile. All functions throw Failure; those that break a
// rule also invalidate the captures that they touch.
#pragma once

#include <cuda_runtime_api.h>

#include "runtime/device_api.h"
#include "runtime/stream.h"

namespace cusim {

/// Appends an operation to the graph of a capturing stream.
void capture_operation(Stream& stream, Operation operation);

/// Where a capturing stream stands, for an event recorded there.
CapturedPoint capture_point(Stream& stream);

/// Lets a stream follow a captured point; it joins the capture if it is not in one.
void capture_wait(Stream& stream, const CapturedPoint& point);

/// A stream that is being destroyed breaks its capture.
void leave_capture(Stream& stream);

void invalidate_capture(std::uint64_t id);

/// Fails where this thread may not make calls that are unsafe during a capture (allocation,
/// synchronisation): see cudaThreadExchangeStreamCaptureMode.
void forbid_while_capturing();

/// Fails when a blocking stream of the device is capturing: the legacy stream would have to wait
/// for it.
void forbid_legacy_stream(int device);

/// Fails when a stream that is waited for or queried is capturing.
void forbid_observing(Stream& stream);

/// Fails when any stream of the device is capturing.
void forbid_observing_device(int device);

/// Fails when a capturing stream would wait for work outside its capture.
void forbid_outside_dependency(Stream& stream);

}  // namespace cusim
