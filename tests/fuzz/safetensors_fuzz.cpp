// Hostile safetensors files: an input is the file.
#include <vector>

#include "lockstep/io/safetensors.h"

#include "fuzz/harness.h"

namespace {

/// A list in a header takes 2 bytes for a number, which becomes a value of 16; vectors grow by
/// doubling.
constexpr lockstep::fuzz::MemoryLimit kLimit{std::size_t{64} << 10, 32};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static lockstep::fuzz::MemoryFile place;
  place.put({data, size});
  lockstep::fuzz::judge(size, kLimit, [&] {
    const lockstep::SafetensorsFile file(place.path());
    std::uint64_t end = 0;
    for (const lockstep::TensorEntry& entry : file.entries()) {
      lockstep::fuzz::require(entry.begin == end && entry.begin <= entry.end,
                              "tensors with gaps or overlaps");
      end = entry.end;
      std::vector<float> values((entry.end - entry.begin) / sizeof(float));
      lockstep::fuzz::require(values.size() * sizeof(float) == entry.end - entry.begin,
                              "a tensor that is no whole number of floats");
      file.read(entry, values.data());
      lockstep::fuzz::require(entry.shape_text().size() <= 100, "a shape without an end");
    }
    lockstep::fuzz::require(end < size, "tensors that are longer than the file");
  });
  return 0;
}
