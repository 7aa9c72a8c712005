// Middle and spread of repeated measurements.
#pragma once

#include <vector>

#include "apps/json_events.h"

namespace lockstep::apps {

struct Spread {
  double median = 0;
  double lowest = 0;
  double highest = 0;
};

/// Of at least one value; of an even number the median is the mean of the middle two.
[[nodiscard]] Spread spread_of(std::vector<double> values);
/// numerators[i] / denominators[i]; both have one value a round.
[[nodiscard]] std::vector<double> ratios(const std::vector<double>& numerators,
                                         const std::vector<double>& denominators);
[[nodiscard]] Json spread_json(const Spread& spread);

}  // namespace lockstep::apps
