// Writes synthetic digits as the four IDX files of MNIST into the folder that is named.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

#include "lockstep/data/synthetic.h"

namespace {

void write(const std::filesystem::path& path, std::initializer_list<std::uint32_t> header,
           const char* values, std::int64_t count) {
  std::ofstream file(path, std::ios::binary);
  for (const std::uint32_t word : header) {
    for (int shift = 24; shift >= 0; shift -= 8) file.put(static_cast<char>(word >> shift));
  }
  file.write(values, count);
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path.string());
}

void write_part(const std::filesystem::path& folder, const std::string& stem,
                const lockstep::Dataset& data) {
  const auto count = static_cast<std::uint32_t>(data.size());
  write(folder / (stem + "-images-idx3-ubyte"), {0x803, count, 28, 28},
        reinterpret_cast<const char*>(data.bytes()), data.size() * 784);
  const std::string labels(data.classes(), data.classes() + data.size());
  write(folder / (stem + "-labels-idx1-ubyte"), {0x801, count}, labels.data(), data.size());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: write_small_mnist FOLDER\n";
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);
  // load_mnist takes the first 5000 training images as the validation set.
  const lockstep::DatasetSplits digits =
      lockstep::synthetic_digits({.train = 6000, .validation = 0, .test = 500});
  write_part(folder, "train", digits.train);
  write_part(folder, "t10k", digits.test);
}
