// Order between streams, and a sequence of operations as one launch.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "lockstep/core/context.h"

namespace lockstep {

/// A point in a stream. On a CPU, where operations are done when they return, it is always reached.
class Event {
 public:
  explicit Event(Device device);

  /// Marks the point that the context's stream has got to.
  void record(const Context& context) const;
  /// Lets what the context is given from now on wait for the point; the caller does not wait.
  void hold_up(const Context& context) const;
  /// Whether the device has got there. Throws what went wrong on it.
  [[nodiscard]] bool reached() const;

 private:
  std::unique_ptr<BackendState> event_;
};

/// A step as one launch: the operations of a CUDA stream, recorded once. There is none on a CPU.
class Graph {
 public:
  /// Records what `work` gives to the context and to contexts that wait for it and are waited for
  /// again; nothing is executed. `work` must not allocate or wait. Throws UsageError on a CPU.
  void record(const Context& context, const std::function<void()>& work);
  void launch(const Context& context) const;
  [[nodiscard]] bool recorded() const { return graph_ != nullptr; }
  /// Nodes of the graph: launches, library kernels, memsets.
  [[nodiscard]] std::size_t nodes() const;

 private:
  std::unique_ptr<BackendState> graph_;
};

/// A named stretch of host code in the timeline of a profiler (NVTX); nothing on a CPU.
class Range {
 public:
  Range(const Context& context, const char* name);
  ~Range();
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;

 private:
  bool pushed_ = false;
};

}  // namespace lockstep
