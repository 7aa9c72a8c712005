// What the commands can be told, as plain structs, and how arguments become them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "lockstep/optim/optimizer.h"
#include "lockstep/parallel/sharding.h"

#include "apps/program.h"

namespace lockstep::apps {

/// What --dataset can be.
[[nodiscard]] std::vector<std::string> dataset_names();

/// Where the samples come from.
struct DataOptions {
  std::string dataset = "mnist";  ///< one of dataset_names()
  std::filesystem::path folder;   ///< of the IDX files; empty: data/<dataset>
  std::optional<std::int64_t> limit_train;
  std::optional<std::int64_t> limit_validation;
  std::optional<std::int64_t> limit_test;
};

/// Options by their names with their values as they would be given.
using Settings = std::map<std::string, std::string>;

struct OutputOptions {
  bool quiet = false;
  bool json = false;
};

struct TrainOptions {
  DataOptions data;
  OutputOptions output;
  std::string devices = "auto";
  std::string precision = "fp32";
  std::string data_resident = "auto";
  bool no_graph = false;
  bool no_fuse = false;
  bool pin = false;
  std::string on_nonfinite = "stop";
  std::int64_t compare_every = 1000;
  std::string model = "article";
  std::filesystem::path init_from;  ///< weights to start from; empty: initialisers
  std::uint64_t seed = 0;
  int epochs = 2;
  std::int64_t batch_size = 128;
  std::int64_t batch_per_replica = 0;  ///< above 0 replaces batch_size
  LastBatch last_batch = LastBatch::keep;
  int shards = 0;
  Reduce reduce = Reduce::fast;
  std::int64_t bucket_bytes = std::int64_t{1} << 20;
  std::string optimizer = "adam";
  std::optional<EpsilonPlace> epsilon_place;  ///< none: the model's
  double momentum = 0;
  double weight_decay = 0.01;
  double lr = 0.01;
  double lr_decay = 0.7;
  double lr_min = 1e-5;
  double l2 = 0;
  double clip_norm = 0;
  int early_stopping = 0;
  bool restore_best = false;
  std::filesystem::path out;     ///< empty: runs/<time>
  std::filesystem::path resume;  ///< folder of a run to go on with; empty: a new run
  std::int64_t checkpoint_every = 0;
  double checkpoint_minutes = 0;
  int keep_checkpoints = 3;
  Settings settings;               ///< all of the above that are set
  std::vector<std::string> given;  ///< names of those that the command line has
};

struct EvalOptions {
  std::filesystem::path weights = "runs/latest";  ///< a run folder or a weights file
  std::string model;                              ///< empty: the run's, else article
  std::string dataset;                            ///< empty: the run's, else mnist
  std::filesystem::path folder;                   ///< empty: data/<dataset>
  std::string split = "test";
  std::optional<std::int64_t> limit;
  std::string devices = "auto";
  std::filesystem::path predictions;  ///< file for one line a sample; empty: none
  OutputOptions output;
};

struct PredictOptions {
  std::vector<std::string> images;
  std::filesystem::path weights = "runs/latest";
  std::string model;
  bool no_preview = false;
  OutputOptions output;
};

struct ParityOptions {
  std::string kind = "cpu";
  std::vector<int> replicas = {1, 2, 4, 8};
  int shards = kInvariantShards;
  std::int64_t steps = 50;
  std::int64_t batch_size = 128;
  std::uint64_t seed = 0;
  std::string model = "article";
  DataOptions data;
  OutputOptions output;
};

struct ReplayOptions {
  std::filesystem::path run = "runs/latest";
  std::string from;        ///< name of a checkpoint; empty: the last but one
  std::int64_t steps = 0;  ///< 0: up to the next checkpoint
  std::string devices;     ///< empty: the run's
  OutputOptions output;
};

struct DoctorOptions {
  std::string devices = "auto";
  DataOptions data;
  std::filesystem::path out;  ///< empty: runs/
  OutputOptions output;
};

struct ScalingOptions {
  std::string kind = "cpu";
  std::vector<int> replicas = {1, 2, 4, 8};
  int rounds = 5;
  std::int64_t steps = 100;
  std::int64_t warm_up = 10;
  std::int64_t batch_size = 128;
  std::string model = "article";
  DataOptions data{.dataset = "synthetic",
                   .folder = {},
                   .limit_train = {},
                   .limit_validation = {},
                   .limit_test = {}};
  std::string json;  ///< file for the JSON report, "-" for stdout, empty for none
  bool quiet = false;
};

struct OpsOptions {
  std::string filter;  ///< part of an operation's name and shape; empty: all
  int rounds = 5;
  std::string json;  ///< as in ScalingOptions
  bool quiet = false;
};

struct PeersOptions {
  std::vector<std::string> models = {"article", "lenet5", "wide_cnn"};
  std::vector<int> cores;  ///< empty: 1 and 2, as many as are allowed
  int rounds = 3;
  std::optional<std::int64_t> samples;  ///< of an epoch; none: all, or 2000 for wide_cnn
  std::string python = "python3";
  std::filesystem::path blas;  ///< folder of a BLAS for PyTorch; empty: its own
  DataOptions data = ScalingOptions{}.data;
  std::string json;  ///< as in ScalingOptions
  bool quiet = false;
};

/// One training of this library for `peers`.
struct PeerOptions {
  std::string model = "article";
  int cores = 1;
  std::int64_t samples = 0;
  int epochs = 1;
  int warm_up = 0;
  std::string file;          ///< the samples
  std::int64_t started = 0;  ///< steady clock when the process was started, ns; 0: now
};

/// Text to print instead of doing anything: --help or --version.
struct PrintText {
  std::string text;
};

using MnistCommand = std::variant<PrintText, TrainOptions, EvalOptions, PredictOptions,
                                  ParityOptions, ReplayOptions, DoctorOptions>;
using BenchCommand = std::variant<PrintText, ScalingOptions, OpsOptions, PeersOptions, PeerOptions>;

/// Arguments of mnist_multi_gpu, program name left out. Throws UsageError.
[[nodiscard]] MnistCommand parse_mnist(const Arguments& arguments);
/// Arguments of lockstep_bench. Throws UsageError.
[[nodiscard]] BenchCommand parse_bench(const Arguments& arguments);

}  // namespace lockstep::apps
