// MNIST and data sets in its file format.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>

#include "lockstep/data/dataset.h"
#include "lockstep/data/idx.h"

namespace lockstep {

/// The four files of `folder` that load_mnist reads: images and labels for training, images and
/// labels of the test set. Throws DataError as load_mnist when one is missing.
[[nodiscard]] std::array<std::filesystem::path, 4> find_mnist(const std::filesystem::path& folder);

/// Reads the four IDX files of MNIST, or of a data set in its format such as Fashion-MNIST, from
/// `folder`: raw or gzip, `train-images-idx3-ubyte` or `train-images.idx3-ubyte`. The first
/// `validation` training images become the validation set, as in the article (5000 of 60000: 55000
/// train, 5000 validation, 10000 test). Samples are (1, height, width), classes 0 to 9; numbers and
/// extents are those of the files, and the name is that of the folder. `progress` counts all four
/// files. Throws DataError naming file, what was found, what was expected and the remedy; for
/// missing files that is scripts/fetch_mnist.sh. UsageError for a negative `validation`.
[[nodiscard]] DatasetSplits load_mnist(const std::filesystem::path& folder,
                                       std::int64_t validation = 5000,
                                       const ReadProgress& progress = {});

}  // namespace lockstep
