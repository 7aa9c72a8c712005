// A training at a step boundary as plain values, and as a folder of files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "lockstep/core/step_state.h"
#include "lockstep/core/tensor.h"

namespace lockstep {

/// What decides the result of a training: one that goes on from a checkpoint has the same. Texts
/// are those of the describe functions.
struct TrainingRecipe {
  std::vector<std::string> model;  ///< a line a layer: "conv_1: conv 3x3, 1->8, ..."
  std::string optimizer;
  std::string schedule;
  std::int64_t schedule_epochs = 0;  ///< that a schedule with an end is laid out for; 0: no end
  std::uint64_t seed = 0;
  std::int64_t batch_size = 0;  ///< of the whole world
  std::string last_batch;       ///< "keep" or "drop"
  std::string reduce;           ///< "fast" or "invariant"
  std::int64_t bucket_bytes = 0;
  float l2 = 0;
  float clip_norm = 0;
  std::string precision;  ///< "fp32" or "tf32"
  bool fuse = true;
  std::string data;  ///< name of the training data
  std::int64_t samples = 0;
  std::string data_sha256;  ///< Dataset::sha256
};

/// A clause for everything in which `now` differs from `before`: "seed is 1 and was 0". Names of
/// data sets may differ.
[[nodiscard]] std::vector<std::string> differences(const TrainingRecipe& before,
                                                   const TrainingRecipe& now);

/// Where a training was computed. A change may change the last bits of its results.
struct TrainingExecution {
  std::string version;    ///< of Lockstep
  std::string backend;    ///< "cpu" or "cuda"
  std::string processor;  ///< instruction set of the CPU kernels ("avx2"), or name of the GPU
  int replicas = 0;
  int shards = 0;
  std::int64_t shard_samples = 0;
  std::int64_t block_samples = 0;  ///< computed at once
};

/// Why what a training computes `now` need not have the bits that it would have had `before`: a
/// clause each, "3 replicas instead of 8". Empty: bit-equality is promised. In invariant mode the
/// number of replicas does not count.
[[nodiscard]] std::vector<std::string> bit_differences(const TrainingExecution& before,
                                                       const TrainingExecution& now,
                                                       bool invariant);

/// What Trainer::fit keeps from epoch to epoch.
struct FitProgress {
  int first_epoch = 0;  ///< where the fit began
  int best_epoch = -1;  ///< lowest validation loss so far; -1: none yet
  double best_loss = std::numeric_limits<double>::infinity();
  int since_best = 0;  ///< epochs since then
};

struct NamedTensor {
  std::string name;  ///< "conv_1.weight"
  Tensor values;
};

/// The checkpoint that one goes back to; empty texts: there is none.
struct CheckpointParent {
  std::string name;    ///< "step-00000430"
  std::string sha256;  ///< of its manifest
};

/// Everything that a training goes on from, free of how many replicas it had. A value: nothing in
/// it refers to files or devices.
struct Checkpoint {
  TrainingRecipe recipe;
  TrainingExecution execution;
  StepState step;            ///< step, epoch and step_in_epoch; the rest is made anew every step
  EpochSums sums;            ///< of the epoch under way, and the moving average
  double train_seconds = 0;  ///< of the epoch under way
  FitProgress fit;
  std::vector<NamedTensor> weights;  ///< in the order of the layers
  /// "conv_1.weight.exp_avg", ...: the optimizer's moments, in its order for every weight.
  std::vector<NamedTensor> moments;
  /// Weights of fit.best_epoch, for a fit that ends with those; else empty.
  std::vector<NamedTensor> best_weights;
  /// What the program that trains wants to find again; a JSON object or empty.
  std::string config;
  CheckpointParent parent;  ///< the one before it in this training

  /// Samples of the epoch's order that are trained on already: the next step begins there.
  [[nodiscard]] std::int64_t position() const {
    return std::int64_t{step.step_in_epoch} * recipe.batch_size;
  }
  /// Made at the end of the epoch with the lowest validation loss so far.
  [[nodiscard]] bool is_best() const {
    return step.step_in_epoch == 0 && fit.best_epoch >= 0 &&
           fit.best_epoch + 1 == static_cast<std::int64_t>(step.epoch);
  }
};

/// Writes the folder `folder`, which is not there yet: weights.safetensors (as save_weights has
/// it), optimizer.safetensors and best.safetensors where there are such tensors, manifest.json with
/// all the rest, and SHA256SUMS, which sha256sum -c takes. Everything is written and synced under a
/// temporary name beside it and renamed then: `folder` is whole or not there. Returns the digest of
/// the manifest. Throws IoError, also when `folder` is there already.
std::string save_checkpoint(const Checkpoint& checkpoint, const std::filesystem::path& folder);

/// Reads such a folder. Every byte is checked by SHA256SUMS. Throws IoError naming the file that is
/// missing, damaged or of a version that this one does not know.
[[nodiscard]] Checkpoint load_checkpoint(const std::filesystem::path& folder);

}  // namespace lockstep
