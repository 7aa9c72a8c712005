#include "lockstep/parallel/buckets.h"

#include <algorithm>

#include "lockstep/core/error.h"

namespace lockstep {

std::vector<Bucket> make_buckets(const ParameterLayout& layout, std::int64_t bucket_bytes) {
  if (bucket_bytes < static_cast<std::int64_t>(kAlignment)) {
    throw UsageError(
        message("buckets: bucket_bytes is ", bucket_bytes, ", want ", kAlignment, " or more"));
  }
  const std::vector<Parameter>& parameters = layout.parameters();
  std::vector<Bucket> buckets;
  std::int64_t first = 0;
  // The arena holds layers from the last to the first, so a layer ends where the layer before it in
  // the model begins.
  for (std::size_t i = parameters.size(); i-- > 0;) {
    const bool first_of_layer = i == 0 || parameters[i - 1].layer != parameters[i].layer;
    if (!first_of_layer) continue;
    std::int64_t end = 0;
    for (const Parameter& parameter : layout.of_layer(parameters[i].layer)) {
      end = std::max(end, round_up(parameter.place.offset + parameter.place.count, kAlignedFloats));
    }
    if ((end - first) * static_cast<std::int64_t>(sizeof(float)) >= bucket_bytes && i > 0) {
      buckets.push_back({first, end - first, parameters[i].layer});
      first = end;
    }
  }
  buckets.push_back({first, layout.gradient_size() - first, 0});
  return buckets;
}

}  // namespace lockstep
