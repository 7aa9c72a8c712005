// The four files of MNIST become three data sets.
#include "lockstep/data/mnist.h"

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/data/byte_source.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr int kClasses = 10;

struct FileKind {
  const char* set;   // "train" or "t10k"
  const char* what;  // "images" or "labels"
  int rank;
};

constexpr std::array<FileKind, 4> kFiles{
    {{"train", "images", 3}, {"train", "labels", 1}, {"t10k", "images", 3}, {"t10k", "labels", 1}}};

std::string raw_name(const FileKind& kind, char separator) {
  return message(kind.set, "-", kind.what, separator, "idx", kind.rank, "-ubyte");
}

std::optional<fs::path> find_file(const fs::path& folder, const FileKind& kind) {
  for (const char* suffix : {"", ".gz"}) {
    for (const char separator : {'-', '.'}) {
      fs::path path = folder / (raw_name(kind, separator) + suffix);
      std::error_code error;
      const auto type = fs::status(path, error).type();
      if (type != fs::file_type::not_found) return path;
    }
  }
  return std::nullopt;
}

/// Adds up the progress over all files.
class TotalProgress {
 public:
  TotalProgress(const std::array<fs::path, 4>& paths, const ReadProgress& progress) {
    if (!progress) return;
    for (const fs::path& path : paths) {
      std::error_code error;
      const auto size = fs::file_size(path, error);
      if (!error) total_ += static_cast<std::int64_t>(size);
    }
    in_file_ = [this, &progress](std::int64_t done, std::int64_t size) {
      progress(before_ + done, total_);
      if (done == size) before_ += size;
    };
  }
  TotalProgress(const TotalProgress&) = delete;
  TotalProgress& operator=(const TotalProgress&) = delete;

  [[nodiscard]] const ReadProgress& in_file() const { return in_file_; }

 private:
  ReadProgress in_file_;
  std::int64_t before_ = 0;
  std::int64_t total_ = 0;
};

Dataset join(const std::string& name, IdxFile images, const fs::path& image_path,
             const IdxFile& labels, const fs::path& label_path) {
  if (images.shape[0] != labels.shape[0]) {
    throw DataError(message(label_path.string(), ": has ", labels.shape[0], " labels but ",
                            image_path.string(), " has ", images.shape[0],
                            " images, expected equal numbers. They are of different data sets; ",
                            "fetch both again: ", detail::fetch_command(label_path)));
  }
  std::vector<std::int32_t> classes(labels.values.begin(), labels.values.end());
  for (std::size_t i = 0; i < classes.size(); ++i) {
    if (classes[i] < kClasses) continue;
    throw DataError(message(label_path.string(), ": label ", i, " is ", classes[i],
                            ", expected 0 to ", kClasses - 1, ". ",
                            detail::fetch_again(label_path)));
  }
  return Dataset::from_bytes(name, images.shape.without_first().with_first(1),
                             std::move(images.values), std::move(classes), kClasses);
}

/// "mnist" of "data/mnist/".
std::string name_of_folder(const fs::path& folder) {
  fs::path path = fs::absolute(folder).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  return path.filename().string();
}

}  // namespace

std::array<fs::path, 4> find_mnist(const fs::path& folder) {
  const std::string remedy =
      message("Fetch it: scripts/fetch_mnist.sh ", folder.string(),
              " (with --fashion for Fashion-MNIST)", ", or train on the synthetic digits");
  std::error_code error;
  const auto type = fs::status(folder, error).type();
  if (type == fs::file_type::not_found) {
    throw DataError(
        message(folder.string(),
                ": there is no such folder, expected one with the four files of MNIST. ", remedy));
  }
  if (!error && type != fs::file_type::directory) {
    throw DataError(message(folder.string(),
                            ": this is no folder, expected one with the four files of MNIST. ",
                            remedy));
  }
  std::array<fs::path, 4> paths;
  std::string missing;
  for (std::size_t i = 0; i < kFiles.size(); ++i) {
    if (auto path = find_file(folder, kFiles[i])) {
      paths[i] = std::move(*path);
    } else {
      missing += (missing.empty() ? "" : ", ") + raw_name(kFiles[i], '-');
    }
  }
  if (!missing.empty()) {
    throw DataError(message(folder.string(), ": has no ", missing,
                            " (nor that with .idx for -idx, or with .gz). ", remedy));
  }
  return paths;
}

DatasetSplits load_mnist(const fs::path& folder, std::int64_t validation,
                         const ReadProgress& progress) {
  if (validation < 0) {
    throw UsageError(
        message("load_mnist: validation is ", validation, ", expected 0 or more samples"));
  }
  const std::array<fs::path, 4> paths = find_mnist(folder);
  const TotalProgress total(paths, progress);
  constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 34;
  std::array<IdxFile, 4> files;
  for (std::size_t i = 0; i < files.size(); ++i) {
    files[i] = read_idx(paths[i], kFiles[i].rank, kMaxBytes, total.in_file());
  }
  const std::string name = name_of_folder(folder);
  const Dataset training = join(name, std::move(files[0]), paths[0], files[1], paths[1]);
  Dataset test = join(name, std::move(files[2]), paths[2], files[3], paths[3]);
  if (training.sample_shape() != test.sample_shape()) {
    throw DataError(message(paths[2].string(), ": has images of shape ", test.sample_shape(),
                            " but ", paths[0].string(), " of ", training.sample_shape(),
                            ", expected equal shapes. They are of different data sets; ",
                            "fetch both again: ", detail::fetch_command(paths[2])));
  }
  if (training.size() <= validation) {
    throw DataError(message(paths[0].string(), ": has ", training.size(),
                            " training samples, expected at least ", validation + 1, ": ",
                            validation, " for validation and one to train on. ",
                            "Ask for a smaller validation set, or use more data"));
  }
  return {.train = training.slice(validation, training.size() - validation),
          .validation = training.slice(0, validation),
          .test = std::move(test)};
}

}  // namespace lockstep
