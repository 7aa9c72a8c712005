// Runs a harness without libFuzzer over the files of its corpus, every shorter file that each of
// them begins with, and every file that differs in one byte: REPLAY FOLDER. What fuzzing has found
// lies in the corpus, so that it is tried again in every build.
#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "fuzz/harness.h"

namespace {

using Content = std::vector<std::uint8_t>;

/// Of a longer file not every place is tried.
constexpr std::size_t kPlaces = 512;

std::size_t runs = 0;

void run(const Content& content) {
  // An exact copy, so that AddressSanitizer sees reads beyond the end.
  const Content exact(content.begin(), content.end());
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
  ++runs;
}

void run_with_neighbours(Content content) {
  run(content);
  const std::size_t step = std::max<std::size_t>(1, content.size() / kPlaces);
  for (std::size_t at = 0; at < content.size(); at += step) {
    run({content.begin(), content.begin() + static_cast<std::ptrdiff_t>(at)});
    const std::uint8_t before = content[at];
    for (const int other : {0x00, 0x01, 0x7F, 0x80, 0xFF, before ^ 0x20}) {
      content[at] = static_cast<std::uint8_t>(other);
      if (content[at] != before) run(content);
    }
    content[at] = before;
  }
}

Content read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  std::string file;
  try {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
      files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    for (const auto& path : files) {
      file = path.string();
      run_with_neighbours(read(path));
    }
    std::printf("%zu files, %zu runs\n", files.size(), runs);
    return files.empty() ? 1 : 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s, or near it: an exception that is no lockstep::Error: %s\n",
                 file.c_str(), error.what());
    return 1;
  }
}
