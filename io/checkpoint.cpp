#include "lockstep/io/checkpoint.h"

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>

#include "lockstep/core/error.h"
#include "lockstep/core/joined.h"
#include "lockstep/core/number_text.h"
#include "lockstep/core/printable.h"
#include "lockstep/core/sha256.h"
#include "lockstep/io/files.h"
#include "lockstep/io/manifest.h"
#include "lockstep/io/safetensors.h"

namespace lockstep {

namespace {

namespace fs = std::filesystem;

constexpr const char* kManifest = "manifest.json";
constexpr const char* kWeights = "weights.safetensors";
constexpr const char* kMoments = "optimizer.safetensors";
constexpr const char* kBest = "best.safetensors";
constexpr const char* kSums = "SHA256SUMS";

std::string digest_of(std::span<const std::string_view> parts) {
  Sha256 digest;
  for (const std::string_view part : parts) digest.add(std::span(part));
  return digest.finish();
}

/// Writes files into a folder and the lines of SHA256SUMS about them.
class SummedFolder {
 public:
  explicit SummedFolder(const fs::path& path) : folder_(path) {}

  /// Returns the digest.
  std::string write(const char* name, std::span<const std::string_view> parts) {
    folder_.write(name, parts);
    std::string digest = digest_of(parts);
    sums_ += digest + "  " + name + '\n';
    return digest;
  }
  void write(const char* name, const std::vector<NamedTensor>& tensors,
             const std::map<std::string, std::string>& metadata) {
    std::vector<TensorToWrite> all;
    for (const NamedTensor& tensor : tensors) {
      all.push_back({tensor.name, tensor.values.shape(), tensor.values.data()});
    }
    const SafetensorsBytes bytes = safetensors_bytes(all, metadata);
    write(name, bytes.parts());
  }
  void put_in_place() {
    const std::string_view sums = sums_;
    folder_.write(kSums, {&sums, 1});
    folder_.put_in_place();
  }

 private:
  NewFolder folder_;
  std::string sums_;
};

/// Names and digests of SHA256SUMS.
std::map<std::string, std::string> read_sums(const fs::path& folder) {
  std::map<std::string, std::string> sums;
  const std::string text = read_file(folder / kSums);
  if (!text.ends_with('\n')) {
    throw IoError(message((folder / kSums).string(), ": its last line is cut off"));
  }
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    constexpr std::size_t kDigits = 64;
    if (line.size() < kDigits + 3 || line.substr(kDigits, 2) != "  ") {
      throw IoError(message((folder / kSums).string(), ": '", printable(line),
                            "' is no digest and name of a file; it is damaged"));
    }
    sums[line.substr(kDigits + 2)] = line.substr(0, kDigits);
  }
  return sums;
}

/// The bytes of `path`, a file of the folder, if they are those that `sums` tells of.
std::string read_summed(const fs::path& path, const std::map<std::string, std::string>& sums) {
  const auto sum = sums.find(path.filename().string());
  if (sum == sums.end()) {
    throw IoError(message((path.parent_path() / kSums).string(), ": has no line for ",
                          path.filename().string(), "; it is damaged or cut off"));
  }
  std::string bytes = read_file(path);
  const std::string_view part = bytes;
  if (digest_of({&part, 1}) != sum->second) {
    throw IoError(
        message(path.string(), ": its SHA-256 is not the one in ", kSums, "; it is damaged"));
  }
  return bytes;
}

Shape shape_of(const TensorEntry& entry, const fs::path& path) {
  if (entry.extents.size() > Shape::kMaxRank) {
    throw IoError(message(path.string(), ": tensor '", printable(entry.name), "' has the shape ",
                          entry.shape_text(), "; at most ", Shape::kMaxRank, " extents are read"));
  }
  Shape shape;
  for (auto extent = entry.extents.rbegin(); extent != entry.extents.rend(); ++extent) {
    shape = shape.with_first(static_cast<std::int64_t>(*extent));
  }
  return shape;
}

/// Fills `tensors` from a file of the folder that holds as many; where there are none it has no
/// file.
void read_tensors(const fs::path& path, const std::map<std::string, std::string>& sums,
                  std::vector<NamedTensor>& tensors) {
  if (tensors.empty()) return;
  const SafetensorsFile file(path, read_summed(path, sums));
  if (file.entries().size() != tensors.size()) {
    throw IoError(message(path.string(), ": has ", file.entries().size(), " tensors, ", kManifest,
                          " says ", tensors.size()));
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const TensorEntry& entry = file.entries()[i];
    Tensor values(shape_of(entry, path));
    file.read(entry, values.data());
    tensors[i] = {entry.name, std::move(values)};
  }
}

using Field = std::pair<const char*, std::string>;

std::vector<Field> fields_of(const TrainingRecipe& recipe) {
  return {{"the model", joined(recipe.model, "; ")},
          {"the optimizer", recipe.optimizer},
          {"the schedule", recipe.schedule},
          {"the epochs of the schedule", number_text(recipe.schedule_epochs)},
          {"the seed", number_text(recipe.seed)},
          {"the batch size", number_text(recipe.batch_size)},
          {"what becomes of the last batch", recipe.last_batch},
          {"the reduction", recipe.reduce},
          {"the bytes of a bucket", number_text(recipe.bucket_bytes)},
          {"l2", number_text(recipe.l2)},
          {"clip_norm", number_text(recipe.clip_norm)},
          {"the precision", recipe.precision},
          {"fusing of layers", recipe.fuse ? "on" : "off"},
          {"the number of training samples", number_text(recipe.samples)},
          {"the SHA-256 of the training data", recipe.data_sha256}};
}

}  // namespace

std::vector<std::string> differences(const TrainingRecipe& before, const TrainingRecipe& now) {
  const std::vector<Field> old_fields = fields_of(before);
  const std::vector<Field> fields = fields_of(now);
  std::vector<std::string> clauses;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].second == old_fields[i].second) continue;
    clauses.push_back(message(fields[i].first, " is ", fields[i].second, " and was ",
                              printable(old_fields[i].second)));
  }
  return clauses;
}

std::vector<std::string> bit_differences(const TrainingExecution& before,
                                         const TrainingExecution& now, bool invariant) {
  std::vector<std::string> clauses;
  const auto compare = [&](const char* what, const auto& was, const auto& is) {
    if (was != is) clauses.push_back(message(is, what, " instead of ", was));
  };
  compare(" as backend", before.backend, now.backend);
  compare(" as processor", before.processor, now.processor);
  compare(" as version", before.version, now.version);
  if (!invariant) compare(" replicas in fast mode", before.replicas, now.replicas);
  compare(" shards", before.shards, now.shards);
  compare(" samples a shard", before.shard_samples, now.shard_samples);
  compare(" samples a block", before.block_samples, now.block_samples);
  return clauses;
}

std::string save_checkpoint(const Checkpoint& checkpoint, const fs::path& folder) {
  const std::string manifest = manifest_text(checkpoint);
  SummedFolder files(folder);
  files.write(kWeights, checkpoint.weights, weights_metadata());
  if (!checkpoint.moments.empty()) files.write(kMoments, checkpoint.moments, {});
  if (!checkpoint.best_weights.empty()) {
    files.write(kBest, checkpoint.best_weights, weights_metadata());
  }
  const std::string_view part = manifest;
  std::string digest = files.write(kManifest, {&part, 1});
  files.put_in_place();
  return digest;
}

Checkpoint load_checkpoint(const fs::path& folder) {
  const std::map<std::string, std::string> sums = read_sums(folder);
  const fs::path manifest_path = folder / kManifest;
  Checkpoint checkpoint = parse_manifest(read_summed(manifest_path, sums), manifest_path.string());
  read_tensors(folder / kWeights, sums, checkpoint.weights);
  read_tensors(folder / kMoments, sums, checkpoint.moments);
  read_tensors(folder / kBest, sums, checkpoint.best_weights);
  return checkpoint;
}

}  // namespace lockstep
