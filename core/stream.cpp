#include "lockstep/core/stream.h"

#include "lockstep/config.h"
#include "lockstep/core/cuda/backend.h"
#include "lockstep/core/error.h"

namespace lockstep {

Event::Event(Device device) {
  if constexpr (kHasCuda) {
    if (device.kind == DeviceKind::cuda) event_ = cuda::make_event(device);
  }
}

void Event::record(const Context& context) const {
  if constexpr (kHasCuda) {
    if (event_ != nullptr) cuda::record_event(*event_, context);
  }
}

void Event::hold_up(const Context& context) const {
  if constexpr (kHasCuda) {
    if (event_ != nullptr) cuda::wait_for_event(*event_, context);
  }
}

bool Event::reached() const {
  if constexpr (kHasCuda) {
    if (event_ != nullptr) return cuda::event_is_done(*event_);
  }
  return true;
}

void Graph::record(const Context& context, const std::function<void()>& work) {
  if constexpr (kHasCuda) {
    if (!context.on_cpu()) {
      graph_.reset();
      graph_ = cuda::capture(context, work);
      return;
    }
  }
  throw UsageError(message("graph: ", context.device().to_string(),
                           " records nothing; call the operations themselves"));
}

void Graph::launch(const Context& context) const {
  if (graph_ == nullptr) throw UsageError("graph: nothing has been recorded yet");
  if constexpr (kHasCuda) cuda::launch_graph(*graph_, context);
}

std::size_t Graph::nodes() const {
  if constexpr (kHasCuda) {
    if (graph_ != nullptr) return cuda::graph_nodes(*graph_);
  }
  return 0;
}

Range::Range(const Context& context, const char* name) {
  if constexpr (kHasCuda) {
    pushed_ = !context.on_cpu();
    if (pushed_) cuda::push_range(name);
  }
}

Range::~Range() {
  if constexpr (kHasCuda) {
    if (pushed_) cuda::pop_range();
  }
}

}  // namespace lockstep
