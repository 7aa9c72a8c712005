#include "apps/image_guards.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace lockstep::apps {

namespace {

/// Follows the markers of a JPEG as stb does.
class JpegTables {
 public:
  explicit JpegTables(const std::vector<std::uint8_t>& jpeg) : jpeg_(jpeg) {}

  bool sound() {
    for (std::size_t at = 0; at + 1 < jpeg_.size();) {
      const std::size_t marker = jpeg_[at + 1];
      if (jpeg_[at] != 0xFF || marker == 0xFF || marker == 0) {
        ++at;  // filling, or the bytes of a scan
        continue;
      }
      if (marker == 0xD9) break;               // the end of the picture
      if (marker >= 0xD0 && marker <= 0xD8) {  // these have no length
        at += 2;
        continue;
      }
      const std::size_t length = byte(at + 2) << 8U | byte(at + 3);
      if (marker == 0xC2) progressive_ = true;
      if (marker == 0xC4 && !take_tables(at + 4, at + 2 + length)) return false;
      if (marker == 0xDA && !has_tables_of(at + 4)) return false;
      at += 2 + std::max<std::size_t>(length, 2);
    }
    return true;
  }

 private:
  /// Beyond the end 0, as stb reads it.
  [[nodiscard]] std::size_t byte(std::size_t at) const { return at < jpeg_.size() ? jpeg_[at] : 0; }

  /// Tables one after another: kind and number, how many codes there are of each length, the codes.
  bool take_tables(std::size_t at, std::size_t end) {
    constexpr std::size_t kLengths = 16;
    constexpr std::size_t kMost = 256;
    while (at < end) {
      std::size_t codes = 0;
      for (std::size_t i = 1; i <= kLengths; ++i) codes += byte(at + i);
      if (codes > kMost) return false;
      (byte(at) >> 4U == 0 ? dc_ : ac_).at(byte(at) & 15U) = true;
      at += 1 + kLengths + codes;
    }
    return true;
  }

  /// Of a scan: its components, each with its two tables, and then the first coefficient.
  [[nodiscard]] bool has_tables_of(std::size_t at) const {
    const std::size_t components = byte(at);
    const bool first = byte(at + 1 + 2 * components) == 0;
    for (std::size_t i = 0; i < components; ++i) {
      const std::size_t tables = byte(at + 2 + 2 * i);
      if ((!progressive_ || first) && !dc_.at(tables >> 4U)) return false;
      if ((!progressive_ || !first) && !ac_.at(tables & 15U)) return false;
    }
    return true;
  }

  const std::vector<std::uint8_t>& jpeg_;
  bool progressive_ = false;
  std::array<bool, 16> dc_{};
  std::array<bool, 16> ac_{};
};

}  // namespace

bool has_whole_chunks(const std::vector<std::uint8_t>& png) {
  constexpr std::size_t kSignature = 8;
  constexpr std::size_t kFrame = 12;  // length, type and check sum
  for (std::size_t at = kSignature; at + kFrame <= png.size();) {
    std::size_t length = 0;
    for (std::size_t i = 0; i < 4; ++i) length = length << 8U | png[at + i];
    if (length > png.size() - at - kFrame) return false;
    if (std::equal(&png[at + 4], &png[at + 8], "IEND")) return true;
    at += kFrame + length;
  }
  return false;
}

bool has_sound_tables(const std::vector<std::uint8_t>& jpeg) {
  return JpegTables(jpeg).sound();
}

}  // namespace lockstep::apps
