// How libFuzzer changes safetensors files.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace {

constexpr std::size_t kLengthBytes = 8;

}  // namespace

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t room);

/// Mutates the header as text and, but for one time in eight, sets its length right again: most
/// random changes would end at the length.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t room, unsigned seed) {
  if (seed % 8 == 0 || size < kLengthBytes || room < 2 * kLengthBytes) {
    return LLVMFuzzerMutate(data, size, room);
  }
  std::uint64_t length = 0;
  for (std::size_t i = kLengthBytes; i-- > 0;) length = length << 8U | data[i];
  std::size_t header = static_cast<std::size_t>(
      std::min<std::uint64_t>(length, static_cast<std::uint64_t>(size - kLengthBytes)));
  const std::vector<std::uint8_t> rest(data + kLengthBytes + header, data + size);
  if (rest.size() + kLengthBytes >= room) return LLVMFuzzerMutate(data, size, room);
  header = LLVMFuzzerMutate(data + kLengthBytes, header, room - kLengthBytes - rest.size());
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    data[i] = static_cast<std::uint8_t>(static_cast<std::uint64_t>(header) >> (8 * i));
  }
  std::copy(rest.begin(), rest.end(), data + kLengthBytes + header);
  return kLengthBytes + header + rest.size();
}
