// lockstep_bench peers: measures.
#include "apps/lockstep_bench/peers.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>

#include <sys/mman.h>
#include <unistd.h>

#include "lockstep/core/error.h"
#include "lockstep/layers/model.h"
#include "lockstep/layers/zoo.h"

#include "apps/lockstep_bench/child_process.h"
#include "apps/lockstep_bench/other_load.h"
#include "apps/lockstep_bench/report_output.h"
#include "apps/progress_bar.h"
#include "apps/setup.h"

namespace lockstep::apps {

namespace {

namespace fs = std::filesystem;

/// Fewer samples than these give an epoch too short to be measured alone.
constexpr std::int64_t kFewSamples = 10000;
/// Of wide_cnn, of which all samples would take minutes an epoch.
constexpr std::int64_t kWideSamples = 2000;

/// The samples as a file that other processes read and that is gone with this one.
class SampleFile {
 public:
  explicit SampleFile(const Dataset& data) {
    file_ = memfd_create("lockstep-samples", 0);
    if (file_ < 0) throw IoError("peers: no memory file for the samples; is /proc mounted?");
    if (data.bytes() == nullptr || data.classes() == nullptr)
      throw UsageError("peers: want samples of bytes with classes; name another --dataset");
    write_all(data.bytes(), static_cast<std::size_t>(data.size() * data.sample_shape().count()));
    const std::vector<std::uint8_t> classes(data.classes(), data.classes() + data.size());
    write_all(classes.data(), classes.size());
  }
  ~SampleFile() { close(file_); }
  SampleFile(const SampleFile&) = delete;
  SampleFile& operator=(const SampleFile&) = delete;

  /// For processes that this one starts.
  [[nodiscard]] std::string path() const { return message("/proc/self/fd/", file_); }

 private:
  void write_all(const std::uint8_t* from, std::size_t bytes) const {
    while (bytes > 0) {
      const ssize_t written = write(file_, from, bytes);
      if (written <= 0) throw IoError("peers: no memory for the samples; take fewer (--samples)");
      from += written;
      bytes -= static_cast<std::size_t>(written);
    }
  }

  int file_ = -1;
};

/// One way to train.
struct Peer {
  std::string system;
  std::string family;  ///< what is missing is missing for all of its settings
  std::vector<std::string> command;
  std::vector<Setting> environment{};
  fs::path needs{};      ///< a file without which it cannot start
  std::string advice{};  ///< where that comes from
};

/// Why a peer gave no measurement.
struct Absence {
  std::string reason;
  bool everywhere = false;  ///< for its family and all models, not just for this peer and model
};

/// Files that come with the programs: beside the folder of this one, built or installed.
fs::path beside(const fs::path& relative) {
  return fs::path(own_program()).parent_path() / relative;
}

std::vector<Peer> all_peers(const PeersOptions& options) {
  const std::string script = beside("../share/lockstep/peer_torch.py").lexically_normal().string();
  std::vector<Setting> best{// Tensors of a step stay mapped from step to step.
                            {"MALLOC_MMAP_THRESHOLD_", "4000000000"},
                            {"MALLOC_TRIM_THRESHOLD_", "8000000000"},
                            {"MALLOC_TOP_PAD_", "67108864"},
                            // Its own threads would compete with PyTorch's.
                            {"OPENBLAS_NUM_THREADS", "1"}};
  if (!options.blas.empty()) {
    const char* const before = std::getenv("LD_LIBRARY_PATH");
    const std::string rest = before == nullptr ? "" : std::string(":") + before;
    best.emplace_back("LD_LIBRARY_PATH", fs::absolute(options.blas).string() + rest);
  }
  const std::string onednn = beside("lockstep_peer_onednn").string();
  const auto torch = [&](const std::string& setting, const std::vector<Setting>& environment) {
    return Peer{"PyTorch " + setting, "PyTorch", {options.python, script, "--setting", setting},
                environment,          script,    "it is built and installed with this program"};
  };
  return {{kOurs, kOurs, {own_program(), "peer"}},
          torch("default", {}),
          torch("best", best),
          {"oneDNN",
           "oneDNN",
           {onednn},
           {},
           onednn,
           "configure with -DLOCKSTEP_PEERS=ON and build "
           "lockstep_peer_onednn"}};
}

PeerMeasurement measurement_of(const Json& line) {
  PeerMeasurement result{.version = line.at("version"),
                         .parameters = line.at("parameters"),
                         .first_step_seconds = line.at("first_step_seconds"),
                         .epoch_seconds = line.at("epoch_seconds"),
                         .peak_rss_bytes = line.at("peak_rss_bytes"),
                         .loss = line.at("loss")};
  if (result.epoch_seconds.empty()) throw DataError("no epoch was measured");
  for (const double seconds : result.epoch_seconds) {
    if (!(seconds > 0)) throw DataError(message("an epoch of ", seconds, " s was measured"));
  }
  return result;
}

/// Runs a peer once; null with `absence` filled in when it measured nothing.
std::optional<PeerMeasurement> measure(const Peer& peer, const PeersModel& model, int cores,
                                       const SampleFile& samples, Absence& absence) {
  if (!peer.needs.empty() && !fs::exists(peer.needs)) {
    absence = {message("there is no ", peer.needs.string(), "; ", peer.advice), true};
    return {};
  }
  std::vector<std::string> command = peer.command;
  const auto add = [&](const char* name, const auto& value) {
    command.insert(command.end(), {name, message(value)});
  };
  add("--model", model.model);
  add("--cores", cores);
  add("--samples", model.samples);
  add("--epochs", model.epochs);
  add("--warm-up", model.warm_up);
  add("--file", samples.path());
  std::vector<Setting> environment = peer.environment;
  environment.emplace_back("OMP_NUM_THREADS", message(cores));
  add("--started", std::chrono::duration_cast<std::chrono::nanoseconds>(
                       std::chrono::steady_clock::now().time_since_epoch())
                       .count());
  const ChildResult result = run_child(command, environment);
  constexpr int kCannotRun = 127;
  if (result.code != 0) {
    const std::string why = last_line(result.err);
    absence = {
        message(command[0],
                result.code == kCannotRun ? " cannot be run" : message(" ended with ", result.code),
                why.empty() ? "" : ": ", why),
        result.code == kCannotRun};
    return {};
  }
  try {
    const Json line = Json::parse(last_line(result.out));
    for (const char* key : {"missing", "model_missing"}) {
      if (!line.contains(key)) continue;
      absence = {line.at(key), key == std::string("missing")};
      return {};
    }
    return measurement_of(line);
  } catch (const std::exception& error) {
    absence = {message(command[0], " printed no measurement (", error.what(), ")"), false};
    return {};
  }
}

/// The measurements of one model.
class ModelRun {
 public:
  ModelRun(PeersReport& report, PeersModel model, std::vector<Peer>& peers, const Dataset& data)
      : report_(report),
        model_(std::move(model)),
        peers_(peers),
        samples_(data),
        parameters_(Model(zoo::by_name(model_.model), digit_shape()).layout().parameter_count()) {}

  void run(const std::vector<int>& cores, ProgressBar& bar) {
    for (const int count : cores) {
      for (const Peer& peer : peers_) {
        model_.rows.push_back({.system = peer.system, .version = {}, .cores = count});
      }
    }
    const auto total = static_cast<std::int64_t>(model_.rows.size()) * report_.rounds;
    std::int64_t done = 0;
    for (int round = 0; round < report_.rounds; ++round) {
      for (PeersRow& row : model_.rows) {
        bar.show(model_.model, done++, total, message(row.system, ", cores ", row.cores));
        measure_row(row);
      }
    }
    bar.erase();
    std::erase_if(model_.rows, [&](const PeersRow& row) { return !peer_of(row); });
    report_.models.push_back(std::move(model_));
  }

 private:
  /// Null when the row's peer has dropped out.
  [[nodiscard]] const Peer* peer_of(const PeersRow& row) const {
    if (std::find(dropped_.begin(), dropped_.end(), row.system) != dropped_.end()) return nullptr;
    for (const Peer& peer : peers_) {
      if (peer.system == row.system) return &peer;
    }
    return nullptr;
  }

  void measure_row(PeersRow& row) {
    const Peer* const peer = peer_of(row);
    if (peer == nullptr) return;
    Absence absence;
    const OtherLoad others;
    std::optional<PeerMeasurement> result = measure(*peer, model_, row.cores, samples_, absence);
    if (result && result->parameters != parameters_) {
      absence = {message("its model has ", result->parameters, " parameters, ours ", parameters_),
                 false};
      result.reset();
    }
    if (!result) return drop(*peer, absence);
    row.others = std::max(row.others, others.cores());
    row.version = result->version;
    row.epochs.push_back(spread_of(result->epoch_seconds).median);
    row.first_steps.push_back(result->first_step_seconds);
    row.peak_rss = std::max(row.peak_rss, result->peak_rss_bytes);
    row.loss = result->loss;
  }

  void drop(const Peer& peer, const Absence& absence) {
    if (peer.family == kOurs) throw Error(message("peers: ", absence.reason));
    if (absence.everywhere) {
      report_.notes.push_back(message(peer.family, ": not measured, because ", absence.reason));
      const std::string family = peer.family;
      std::erase_if(peers_, [&](const Peer& other) { return other.family == family; });
    } else {
      report_.notes.push_back(
          message(peer.system, ": not measured with ", model_.model, ", because ", absence.reason));
      dropped_.push_back(peer.system);
    }
  }

  PeersReport& report_;
  PeersModel model_;
  std::vector<Peer>& peers_;
  SampleFile samples_;
  std::int64_t parameters_;
  std::vector<std::string> dropped_;  ///< systems that this model does not have
};

std::vector<int> cores_of(const PeersOptions& options) {
  const int allowed = allowed_cores();
  if (options.cores.empty()) return allowed > 1 ? std::vector<int>{1, 2} : std::vector<int>{1};
  for (const int cores : options.cores) {
    if (cores > allowed) {
      throw UsageError(message("--cores: ", cores, "; this process may use ", allowed,
                               ", and more would share them: take fewer"));
    }
  }
  return options.cores;
}

}  // namespace

ExitCode run_peers(const PeersOptions& options) {
  const bool human = begin_report(options.json, options.quiet);
  ProgressBar bar(human);
  const std::vector<int> cores = cores_of(options);
  DataOptions data = options.data;
  data.limit_train = options.samples;
  data.limit_validation = 0;
  data.limit_test = 0;
  const Dataset train = load_data(data, bar).train;
  PeersReport report{.processor = processor_text("cpu"),
                     .cores = allowed_cores(),
                     .dataset = options.data.dataset,
                     .rounds = options.rounds};
  std::vector<Peer> peers = all_peers(options);
  for (const std::string& name : options.models) {
    const bool fewer = name == "wide_cnn" && !options.samples;
    const Dataset samples = fewer ? train.take(kWideSamples) : train;
    const bool few = samples.size() < kFewSamples;
    PeersModel model{
        .model = name, .samples = samples.size(), .warm_up = few ? 1 : 0, .epochs = few ? 3 : 1};
    ModelRun(report, std::move(model), peers, samples).run(cores, bar);
  }
  derive(report);
  if (human) write_peers(std::cout, report);
  deliver(options.json, peers_event(report));
  return ExitCode::ok;
}

}  // namespace lockstep::apps
