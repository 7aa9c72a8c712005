// SHA-256 (FIPS 180-4), for telling files and data sets apart and finding damage.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace lockstep {

/// A digest of bytes that come in parts.
class Sha256 {
 public:
  void add(std::span<const std::byte> bytes);
  /// The objects of an array, as they lie in memory.
  template <class T>
  void add(std::span<const T> values) {
    add(std::as_bytes(values));
  }
  /// The digest of all that was added as 64 lower-case hexadecimal digits; nothing may be added
  /// afterwards.
  [[nodiscard]] std::string finish();

 private:
  static constexpr std::size_t kBlockBytes = 64;

  // First 32 bits of the fractional parts of the square roots of the first 8 primes.
  std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, kBlockBytes> block_{};  ///< bytes that do not fill one yet
  std::uint64_t bytes_ = 0;                     ///< added so far
};

/// The digest of `bytes`.
[[nodiscard]] std::string sha256(std::span<const std::byte> bytes);

}  // namespace lockstep
