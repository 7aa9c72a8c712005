// MNIST and data sets in its file format.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "lockstep/data/dataset.h"

namespace lockstep {

/// Called while files are read: bytes read so far and in all.
using ReadProgress = std::function<void(std::int64_t done, std::int64_t total)>;

/// Reads the four IDX files of MNIST (or Fashion-MNIST) from `folder`, raw or gzip, `train-images-idx3-ubyte` or
/// `train-images.idx3-ubyte`. The first `validation` training images become the validation set, as in the article (5000 of
/// 60000: 55000 train, 5000 validation, 10000 test). Sizes are taken from the files. Throws DataError naming file, what
/// was found, what was expected and the remedy; for missing files that is scripts/fetch_mnist.sh.
[[nodiscard]] DatasetSplits load_mnist(const std::filesystem::path& folder, std::int64_t validation = 5000,
                                       const ReadProgress& progress = {});

}  // namespace lockstep
