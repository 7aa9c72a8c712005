#include "apps/lockstep_bench/statistics.h"

#include <algorithm>

namespace lockstep::apps {

Spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  const double median =
      values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  return {median, values.front(), values.back()};
}

std::vector<double> ratios(const std::vector<double>& numerators,
                           const std::vector<double>& denominators) {
  std::vector<double> quotients;
  for (std::size_t i = 0; i < numerators.size(); ++i) {
    quotients.push_back(numerators[i] / denominators.at(i));
  }
  return quotients;
}

Json spread_json(const Spread& spread) {
  Json json;
  json["median"] = spread.median;
  json["lowest"] = spread.lowest;
  json["highest"] = spread.highest;
  return json;
}

}  // namespace lockstep::apps
