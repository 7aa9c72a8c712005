// Figures and reports of lockstep_bench peers.
#include <algorithm>

#include "apps/lockstep_bench/peers.h"
#include "apps/text.h"

namespace lockstep::apps {

namespace {

constexpr double kMegabyte = 1e6;

const PeersRow* ours_of(const PeersModel& model, int cores) {
  for (const PeersRow& row : model.rows) {
    if (row.system == kOurs && row.cores == cores) return &row;
  }
  return nullptr;
}

std::string ratio_text(const PeersRow& row, double ratio) {
  return row.ratio_rounds.empty() ? "-" : fixed(ratio, 2);
}

void write_model(std::ostream& out, const PeersModel& model) {
  std::size_t width = 6;
  for (const PeersRow& row : model.rows) width = std::max(width, row.system.size());
  out << '\n'
      << model.model << ", " << model.samples << " samples; "
      << (model.warm_up > 0 ? std::to_string(model.warm_up) + " epoch of warm-up, then " : "")
      << model.epochs << (model.epochs == 1 ? " epoch" : " epochs") << " a process\n"
      << left("system", width)
      << "  cores   epoch s    lowest   highest    ratio   lowest  highest  first step s   "
         "peak MB     loss  others\n";
  for (const PeersRow& row : model.rows) {
    out << left(row.system, width) << right(std::to_string(row.cores), 7)
        << right(fixed(row.epoch.median, 3), 10) << right(fixed(row.epoch.lowest, 3), 10)
        << right(fixed(row.epoch.highest, 3), 10) << right(ratio_text(row, row.ratio.median), 9)
        << right(ratio_text(row, row.ratio.lowest), 9)
        << right(ratio_text(row, row.ratio.highest), 9) << right(fixed(row.first_step, 2), 14)
        << right(fixed(row.peak_rss / kMegabyte, 0), 10) << right(fixed(row.loss, 4), 9)
        << right(fixed(row.others, 2), 8) << '\n';
  }
}

}  // namespace

void derive(PeersReport& report) {
  for (PeersModel& model : report.models) {
    for (PeersRow& row : model.rows) {
      row.epoch = spread_of(row.epochs);
      row.first_step = spread_of(row.first_steps).median;
      const PeersRow* const ours = ours_of(model, row.cores);
      if (ours == nullptr || ours == &row) continue;
      row.ratio_rounds = ratios(row.epochs, ours->epochs);
      row.ratio = spread_of(row.ratio_rounds);
    }
  }
}

void write_peers(std::ostream& out, const PeersReport& report) {
  out << "peers: cpu (" << report.processor << "), " << report.cores << " cores, data "
      << report.dataset << ", batch " << kPeersBatch << ", Adam; " << report.rounds
      << " interleaved rounds, every measurement a process of its own\n";
  for (const PeersModel& model : report.models) write_model(out, model);
  out << "\nepoch: seconds with shuffling and gathering; ratio: over " << kOurs
      << "'s of the same round and cores\n"
         "first step: since the start of the process, median; peak: memory of the process; loss: "
         "mean over the last epoch\n"
      << "others: cores that other processes kept busy meanwhile, highest of the rounds; above 0.1 "
         "such a row says little\n"
      << "PyTorch default: NCHW, as installed; best: channels last, Adam over all tensors at once, "
         "memory kept by\nmalloc, and the BLAS of --blas\n";
  for (const std::string& note : report.notes) out << note << '\n';
  out << std::flush;
}

Json peers_event(const PeersReport& report) {
  Json event = make_event("peers");
  event["kind"] = "cpu";
  event["processor"] = report.processor;
  event["cores"] = report.cores;
  event["dataset"] = report.dataset;
  event["batch_size"] = kPeersBatch;
  event["rounds"] = report.rounds;
  event["models"] = Json::array();
  for (const PeersModel& model : report.models) {
    Json json;
    json["model"] = model.model;
    json["samples"] = model.samples;
    json["warm_up_epochs"] = model.warm_up;
    json["epochs"] = model.epochs;
    json["rows"] = Json::array();
    for (const PeersRow& row : model.rows) {
      Json cells;
      cells["system"] = row.system;
      cells["version"] = row.version;
      cells["cores"] = row.cores;
      cells["epoch_seconds"] = spread_json(row.epoch);
      cells["rounds"] = row.epochs;
      if (!row.ratio_rounds.empty()) {
        cells["ratio"] = spread_json(row.ratio);
        cells["ratio_rounds"] = row.ratio_rounds;
      }
      cells["first_step_seconds"] = row.first_step;
      cells["peak_rss_bytes"] = row.peak_rss;
      cells["loss"] = row.loss;
      cells["other_processes_cores"] = row.others;
      json["rows"].push_back(cells);
    }
    event["models"].push_back(json);
  }
  event["not_measured"] = report.notes;
  return event;
}

}  // namespace lockstep::apps
