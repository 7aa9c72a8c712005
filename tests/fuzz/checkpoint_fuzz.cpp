// Hostile checkpoints. The first byte of an input says which file of a checkpoint the rest is to
// be; all others are whole. Of SHA256SUMS `@` and a letter stand for a right digest, in the other
// cases it is right: random bytes would never get past it. A file of tensors gets the length of its
// header, which ends with the first line.
#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>

#include "lockstep/core/sha256.h"
#include "lockstep/io/checkpoint.h"

#include "fuzz/harness.h"
#include "io/checkpoint_cases.h"
#include "io/scratch.h"

namespace {

using lockstep::fuzz::MemoryFile;
using lockstep::fuzz::require;

/// As for a manifest, and text of SHA256SUMS.
constexpr lockstep::fuzz::MemoryLimit kLimit{std::size_t{65535} * sizeof(lockstep::NamedTensor),
                                             64};

constexpr const char* kSums = "SHA256SUMS";
constexpr std::array kFiles = {"manifest.json", "weights.safetensors", "optimizer.safetensors",
                               "best.safetensors"};

std::string digest_of(const std::string& bytes) {
  return lockstep::sha256(std::as_bytes(std::span(bytes)));
}

lockstep::fuzz::Bytes bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

/// A checkpoint in which one file at a time is another. Its files lie in memory.
class Place {
 public:
  Place() : folder_(root_.path() / "step-00000003") {
    lockstep::save_checkpoint(lockstep::test::small_checkpoint(3), folder_);
    for (std::size_t i = 0; i < kFiles.size(); ++i) {
      whole_[i] = lockstep::test::read_text(folder_ / kFiles[i]);
      digests_[i] = digest_of(whole_[i]);
      files_[i].put(bytes_of(whole_[i]));
      put_link(kFiles[i], files_[i]);
    }
    put_link(kSums, sums_);
  }

  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }

  void put(std::size_t kind, std::string_view rest) {
    std::string sums;
    if (kind >= kFiles.size()) {
      for (std::size_t at = 0; at < rest.size(); ++at) {
        const std::size_t file = at + 1 < rest.size() ? std::string_view("mwob").find(rest[at + 1])
                                                      : std::string_view::npos;
        if (rest[at] != '@' || file == std::string_view::npos) {
          sums += rest[at];
        } else {
          sums += digests_[file];
          ++at;
        }
      }
    }
    for (std::size_t i = 0; i < kFiles.size(); ++i) {
      std::string digest = digests_[i];
      if (i == kind) {
        const std::string bytes = file_of(kind, rest);
        digest = digest_of(bytes);
        files_[i].put(bytes_of(bytes));
      } else if (i == changed_) {
        files_[i].put(bytes_of(whole_[i]));
      }
      if (kind < kFiles.size()) sums += digest + "  " + kFiles[i] + '\n';
    }
    changed_ = kind;
    sums_.put(bytes_of(sums));
  }

 private:
  static std::string file_of(std::size_t kind, std::string_view rest) {
    std::string bytes(rest);
    if (kind == 0) return bytes;
    std::string length;
    const std::size_t header = std::min(rest.find('\n'), rest.size());
    for (unsigned i = 0; i < 8; ++i) length += static_cast<char>(header >> (8 * i) & 0xFFU);
    if (header < rest.size()) bytes.erase(header, 1);
    return length + bytes;
  }

  void put_link(const char* name, const MemoryFile& file) const {
    std::filesystem::remove(folder_ / name);
    std::filesystem::create_symlink(file.path(), folder_ / name);
  }

  lockstep::test::Scratch root_;
  std::filesystem::path folder_;
  MemoryFile sums_;
  std::array<MemoryFile, kFiles.size()> files_;
  std::array<std::string, kFiles.size()> whole_;
  std::array<std::string, kFiles.size()> digests_;
  std::size_t changed_ = kFiles.size();
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Place place;
  if (size == 0) return 0;
  place.put(data[0] % (kFiles.size() + 1), {reinterpret_cast<const char*>(data) + 1, size - 1});
  lockstep::fuzz::judge(size + 8192, kLimit, [&] {
    const lockstep::Checkpoint read = lockstep::load_checkpoint(place.folder());
    for (const auto* tensors : {&read.weights, &read.moments, &read.best_weights}) {
      for (const lockstep::NamedTensor& tensor : *tensors) {
        require(std::ssize(tensor.values.values()) == tensor.values.shape().count(),
                "a tensor whose values do not fill its shape");
      }
    }
    require(differences(read.recipe, read.recipe).empty(), "a recipe that differs from itself");
  });
  return 0;
}
