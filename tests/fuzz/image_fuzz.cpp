// Hostile pictures for predict: an input is the file.
#include <algorithm>

#include "apps/digit_image.h"
#include "apps/image_file.h"
#include "fuzz/harness.h"

namespace {

/// Floats for the most pixels that a byte of a PNG can be, in vectors that grow by doubling.
constexpr lockstep::fuzz::MemoryLimit kLimit{std::size_t{128} << 10, 2 * 4 * 8 * 1032};

bool grey(float value) {
  return value >= 0 && value <= 1;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static lockstep::fuzz::MemoryFile place;
  place.put({data, size});
  lockstep::fuzz::judge(size, kLimit, [&] {
    const lockstep::apps::GreyImage image = lockstep::apps::read_image(place.path());
    lockstep::fuzz::require(
        image.width >= 1 && image.height >= 1 && image.values.size() == image.width * image.height,
        "pixels that do not fill the picture");
    lockstep::fuzz::require(std::all_of(image.values.begin(), image.values.end(), grey),
                            "a pixel that is no grey");
    const lockstep::apps::DigitImage digit = lockstep::apps::prepare_digit(image, "picture");
    lockstep::fuzz::require(std::all_of(digit.pixels.begin(), digit.pixels.end(), grey),
                            "a pixel of the digit that is no grey");
  });
  return 0;
}
