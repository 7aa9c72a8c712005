#include "apps/image_file.h"

#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_PNG
#define STBI_ONLY_JPEG
#define STBI_NO_STDIO
#define STBI_MAX_DIMENSIONS 32768
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#include <stb_image.h>
#pragma GCC diagnostic pop

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "lockstep/core/error.h"
#include "lockstep/core/printable.h"

#include "apps/image_guards.h"

namespace lockstep::apps {

namespace {

constexpr std::int64_t kMaxPixels = std::int64_t{1} << 26;
constexpr std::size_t kMaxFileBytes = std::size_t{1} << 28;

/// Pixels that a byte of a file can be at most. Deflate makes at most 1032 bytes of one, and a byte
/// of a PNG is at most 8 pixels; a block of 8 x 8 pixels takes a bit of a JPEG at least.
constexpr std::int64_t kPngPixels = 8 * 1032;
constexpr std::int64_t kJpegPixels = 8 * 64;

void check_size(std::int64_t width, std::int64_t height, const std::string& name) {
  if (width <= kMaxPixels && height <= kMaxPixels / width) return;
  throw DataError(message(name, ": ", width, " x ", height, " pixels; want at most ", kMaxPixels,
                          " in all, scale it down"));
}

std::vector<std::uint8_t> read_file(const std::filesystem::path& path) {
  std::error_code ignored;
  const bool regular = std::filesystem::is_regular_file(path, ignored);  // a pipe could hang
  std::ifstream file;
  if (regular) file.open(path, std::ios::binary);
  if (!regular || !file) {
    throw DataError(message(path.string(), ": cannot be read; want a PNG, JPEG or PGM file"));
  }
  std::vector<std::uint8_t> bytes;
  std::vector<char> part(1 << 16);
  while (file.read(part.data(), static_cast<std::streamsize>(part.size())) || file.gcount() > 0) {
    bytes.insert(bytes.end(), part.begin(), part.begin() + file.gcount());
    if (bytes.size() > kMaxFileBytes) {
      throw DataError(
          message(path.string(), ": larger than ", kMaxFileBytes, " bytes; scale it down"));
    }
  }
  return bytes;
}

/// The next number of a PNM header behind blanks and comments; -1 when there is none.
std::int64_t next_number(const std::vector<std::uint8_t>& bytes, std::size_t& at) {
  while (at < bytes.size() && (std::isspace(bytes[at]) != 0 || bytes[at] == '#')) {
    if (bytes[at] == '#') {
      while (at < bytes.size() && bytes[at] != '\n') ++at;
    } else {
      ++at;
    }
  }
  if (at == bytes.size() || std::isdigit(bytes[at]) == 0) return -1;
  std::int64_t number = 0;
  for (; at < bytes.size() && std::isdigit(bytes[at]) != 0; ++at) {
    number = std::min<std::int64_t>(10 * number + (bytes[at] - '0'), kMaxPixels + 1);
  }
  return number;
}

/// Binary PGM ("P5") and PPM ("P6"). stb reads them too, but takes a truncated file for a whole
/// one.
GreyImage read_pnm(const std::vector<std::uint8_t>& bytes, const std::string& name) {
  std::size_t at = 2;
  const std::int64_t width = next_number(bytes, at);
  const std::int64_t height = next_number(bytes, at);
  const std::int64_t highest = next_number(bytes, at);
  if (width < 1 || height < 1 || highest < 1 || highest > 255) {
    throw DataError(
        message(name,
                ": its PGM header is damaged or says more than 8 bits a value; want width, "
                "height and a highest value up to 255"));
  }
  check_size(width, height, name);
  ++at;  // one blank ends the header
  const std::size_t channels = bytes[1] == '6' ? 3 : 1;
  GreyImage image{static_cast<std::size_t>(width), static_cast<std::size_t>(height), {}};
  const std::size_t pixels = image.width * image.height;
  if (at > bytes.size() || bytes.size() - at < pixels * channels) {
    throw DataError(message(name, ": truncated; ", width, " x ", height, " pixels need ",
                            at + pixels * channels, " bytes, the file has ", bytes.size()));
  }
  image.values.resize(pixels);
  const std::uint8_t* value = bytes.data() + at;
  for (float& grey : image.values) {
    const float sum = channels == 3 ? 0.299F * value[0] + 0.587F * value[1] + 0.114F * value[2]
                                    : static_cast<float>(value[0]);
    grey = std::min(sum / static_cast<float>(highest), 1.0F);
    value += channels;
  }
  return image;
}

}  // namespace

GreyImage read_image(const std::filesystem::path& path) {
  const std::vector<std::uint8_t> bytes = read_file(path);
  if (bytes.size() > 2 && bytes[0] == 'P' && (bytes[1] == '5' || bytes[1] == '6')) {
    return read_pnm(bytes, path.string());
  }
  const int size = static_cast<int>(bytes.size());
  int width = 0;
  int height = 0;
  int channels = 0;
  const auto refuse = [&](const char* why) {
    // The reason may hold the name of a PNG chunk, which is any four bytes.
    return DataError(message(path.string(), ": not a picture that can be read (", printable(why),
                             "); want a PNG, JPEG or PGM file"));
  };
  const bool png = !bytes.empty() && bytes[0] == 0x89;
  if (png && !has_whole_chunks(bytes)) throw refuse("a chunk is cut off");
  if (!png && !has_sound_tables(bytes)) throw refuse("its Huffman tables are damaged");
  if (stbi_info_from_memory(bytes.data(), size, &width, &height, &channels) == 0) {
    throw refuse(stbi_failure_reason());
  }
  check_size(width, height, path.string());
  const std::int64_t most = (png ? kPngPixels : kJpegPixels) * std::ssize(bytes);
  if (std::int64_t{width} * height > most) {
    throw DataError(message(path.string(), ": ", width, " x ", height,
                            " pixels do not fit into its ", bytes.size(),
                            " bytes; it is cut off or damaged, want the whole picture"));
  }
  const std::unique_ptr<stbi_uc, decltype(&stbi_image_free)> pixels(
      stbi_load_from_memory(bytes.data(), size, &width, &height, &channels, STBI_grey_alpha),
      &stbi_image_free);
  if (!pixels) throw refuse(stbi_failure_reason());
  GreyImage image{static_cast<std::size_t>(width), static_cast<std::size_t>(height), {}};
  image.values.resize(image.width * image.height);
  for (std::size_t i = 0; i < image.values.size(); ++i) {
    const float grey = static_cast<float>(pixels.get()[2 * i]) / 255.0F;
    const float alpha = static_cast<float>(pixels.get()[2 * i + 1]) / 255.0F;
    image.values[i] = grey * alpha + (1.0F - alpha);
  }
  return image;
}

}  // namespace lockstep::apps
