// Figures and reports of lockstep_bench ops.
#include <algorithm>

#include "apps/lockstep_bench/ops.h"
#include "apps/text.h"

namespace lockstep::apps {

namespace {

std::string bytes_text(std::int64_t bytes) {
  const std::int64_t kib = bytes >> 10;
  return kib < 1024 ? std::to_string(kib) + " KiB" : std::to_string(kib >> 10) + " MiB";
}

std::string micro(double seconds) {
  return fixed(1e6 * seconds, 2);
}

}  // namespace

void derive(OpsReport& report) {
  const Machine& machine = report.machine;
  for (OpsRow& row : report.rows) {
    row.time = spread_of(row.seconds);
    row.flop_rate = row.flops / row.time.median;
    row.byte_rate = row.bytes / row.time.median;
    row.bound =
        std::max(row.flops / machine.peak, row.bytes / machine.bandwidth_for(row.working_set));
    row.share_of_bound = row.bound / row.time.median;
    row.share_of_peak = row.flop_rate / machine.peak;
  }
}

void write_ops(std::ostream& out, const OpsReport& report) {
  out << "ops: cpu (" << report.set << "), one thread; medians of " << report.rounds
      << " interleaved rounds; others kept " << fixed(report.others, 2) << " cores busy\n"
      << "multiply-adds in registers: " << fixed(report.machine.peak / 1e9, 1) << " GFLOP/s\n"
      << "a = b + s * c by working set:";
  for (const MemoryLevel& level : report.machine.levels) {
    out << (&level == report.machine.levels.data() ? " " : ", ") << bytes_text(level.bytes) << ' '
        << fixed(level.bandwidth / 1e9, 1) << " GB/s";
  }
  std::size_t names = 9;
  std::size_t shapes = 5;
  for (const OpsRow& row : report.rows) {
    names = std::max(names, row.operation.size());
    shapes = std::max(shapes, row.shape.size());
  }
  out << "\n\n"
      << left("operation", names) << "  " << left("shape", shapes)
      << "    block     time us      lowest     highest  GFLOP/s     GB/s    bound us  of bound  "
         "of peak\n";
  for (const OpsRow& row : report.rows) {
    out << left(row.operation, names) << "  " << left(row.shape, shapes)
        << right(std::to_string(row.block), 9) << right(micro(row.time.median), 12)
        << right(micro(row.time.lowest), 12) << right(micro(row.time.highest), 12)
        << right(fixed(row.flop_rate / 1e9, 1), 9) << right(fixed(row.byte_rate / 1e9, 1), 9)
        << right(micro(row.bound), 12) << right(fixed(100 * row.share_of_bound, 1) + "%", 10)
        << right(fixed(100 * row.share_of_peak, 1) + "%", 9) << '\n';
  }
  out << "\nblock: samples of a call, or floats of an arena\n"
         "GFLOP/s: nominal operations, two for a multiply-add, borders of images included\n"
         "GB/s: every input read once, every output written once\n"
         "bound: the longer of nominal operations at the rate of multiply-adds, and those bytes at "
         "the rate of\nthe smallest working set that holds them; the machine's rates are the best "
         "of all rounds\n"
         "Above 100%: an operation that skips work, as gradients through max-pooling may, or bytes "
         "in a faster\ncache than that working set's.\n"
      << std::flush;
}

Json ops_event(const OpsReport& report) {
  Json event = make_event("ops");
  event["kind"] = "cpu";
  event["processor"] = report.set;
  event["threads"] = 1;
  event["rounds"] = report.rounds;
  event["other_processes_cores"] = report.others;
  event["peak_flops_per_second"] = report.machine.peak;
  event["bandwidth"] = Json::array();
  for (const MemoryLevel& level : report.machine.levels) {
    Json json;
    json["working_set"] = level.bytes;
    json["bytes_per_second"] = level.bandwidth;
    event["bandwidth"].push_back(json);
  }
  event["rows"] = Json::array();
  for (const OpsRow& row : report.rows) {
    Json json;
    json["operation"] = row.operation;
    json["shape"] = row.shape;
    json["block"] = row.block;
    json["flops"] = row.flops;
    json["bytes"] = row.bytes;
    json["working_set"] = row.working_set;
    json["seconds"] = spread_json(row.time);
    json["rounds"] = row.seconds;
    json["flops_per_second"] = row.flop_rate;
    json["bytes_per_second"] = row.byte_rate;
    json["bound_seconds"] = row.bound;
    json["share_of_bound"] = row.share_of_bound;
    json["share_of_peak"] = row.share_of_peak;
    json["processor"] = report.set;
    event["rows"].push_back(json);
  }
  return event;
}

}  // namespace lockstep::apps
