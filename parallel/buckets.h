// Which parts of the gradient arena are reduced together.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/layers/parameter.h"

namespace lockstep {

/// A contiguous range of the gradient arena that one collective reduces.
struct Bucket {
  std::int64_t first = 0;  ///< in floats
  std::int64_t count = 0;
  int ready_after = 0;  ///< the backward pass of this layer completes it

  friend bool operator==(const Bucket&, const Bucket&) = default;
};

/// Cuts the gradient arena into buckets of whole layers, in the order in which backward completes
/// them; a bucket is closed when it has `bucket_bytes` or more. The last one has the StepTail and
/// is complete after layer 0. Throws UsageError for bucket_bytes below 64.
[[nodiscard]] std::vector<Bucket> make_buckets(const ParameterLayout& layout,
                                               std::int64_t bucket_bytes);

}  // namespace lockstep
