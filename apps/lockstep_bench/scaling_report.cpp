// Figures and reports of lockstep_bench scaling.
#include <algorithm>

#include "apps/lockstep_bench/scaling.h"
#include "apps/lockstep_bench/statistics.h"
#include "apps/text.h"

namespace lockstep::apps {

namespace {

void write_table(std::ostream& out, const std::vector<ScalingRow>& rows) {
  out << "replicas    batch     samples/s        lowest       highest  speed-up  efficiency\n";
  for (const ScalingRow& row : rows) {
    out << right(std::to_string(row.replicas) + (row.above_cores ? "*" : " "), 9)
        << right(std::to_string(row.batch_size), 8) << right(fixed(row.median, 0), 14)
        << right(fixed(row.lowest, 0), 14) << right(fixed(row.highest, 0), 14)
        << right(fixed(row.speed_up, 2), 10) << right(fixed(100 * row.efficiency, 1) + "%", 12)
        << '\n';
  }
}

Json rows_json(const std::vector<ScalingRow>& rows) {
  Json list = Json::array();
  for (const ScalingRow& row : rows) {
    Json json;
    json["replicas"] = row.replicas;
    json["batch_size"] = row.batch_size;
    json["samples_per_second"] = row.median;
    json["lowest"] = row.lowest;
    json["highest"] = row.highest;
    json["rounds"] = row.rates;
    json["speed_up"] = row.speed_up;
    json["efficiency"] = row.efficiency;
    json["above_cores"] = row.above_cores;
    list.push_back(json);
  }
  return list;
}

bool any_above(const std::vector<ScalingRow>& rows) {
  return std::any_of(rows.begin(), rows.end(), [](const auto& row) { return row.above_cores; });
}

}  // namespace

void derive(std::vector<ScalingRow>& rows) {
  for (ScalingRow& row : rows) {
    const Spread spread = spread_of(row.rates);
    row.median = spread.median;
    row.lowest = spread.lowest;
    row.highest = spread.highest;
    row.speed_up = row.median / rows.front().median;
    row.efficiency = row.speed_up * rows.front().replicas / row.replicas;
  }
}

void write_scaling(std::ostream& out, const ScalingReport& report) {
  out << "scaling: " << report.kind << " (" << report.processor << "), " << report.cores
      << " cores, model " << report.model << ", data " << report.dataset << '\n'
      << "medians of " << report.rounds << " interleaved rounds of " << report.steps << " steps, "
      << report.warm_up << " steps of warm-up before each\n\n"
      << "strong scaling: one batch of " << report.batch_size << " for all replicas together\n";
  write_table(out, report.strong);
  out << "\nweak scaling: a batch of " << report.batch_size << " for each replica\n";
  write_table(out, report.weak);
  if (any_above(report.strong) || any_above(report.weak)) {
    out << "\n* more replicas than the " << report.cores
        << " cores of this process: they share cores, no speed-up is to be had\n";
  }
  out << std::flush;
}

Json scaling_event(const ScalingReport& report) {
  Json event = make_event("scaling");
  event["kind"] = report.kind;
  event["processor"] = report.processor;
  event["cores"] = report.cores;
  event["model"] = report.model;
  event["dataset"] = report.dataset;
  event["batch_size"] = report.batch_size;
  event["rounds"] = report.rounds;
  event["steps"] = report.steps;
  event["warm_up"] = report.warm_up;
  event["strong"] = rows_json(report.strong);
  event["weak"] = rows_json(report.weak);
  return event;
}

}  // namespace lockstep::apps
