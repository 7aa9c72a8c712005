// Records which operations ran on the devices, and when.
#pragma once

#include <cstdint>

#include "runtime/device_api.h"

namespace cusim {

/// One operation while it runs; its life is the entry's begin and end.
class TraceSpan {
 public:
  TraceSpan(const Operation& operation, int device, std::uint64_t stream);
  ~TraceSpan();
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

 private:
  const Operation& operation_;
  int device_;
  std::uint64_t stream_;
  std::uint64_t begin_ = 0;  ///< 0: nothing is recorded
};

}  // namespace cusim
