// Any picture of one digit, brought to what MNIST's pictures look like.
#pragma once

#include <string>
#include <vector>

#include "apps/image_file.h"

namespace lockstep::apps {

inline constexpr std::size_t kDigitSide = 28;

struct DigitImage {
  std::vector<float>
      pixels;             ///< kDigitSide rows of kDigitSide values in [0, 1], multiples of 1/255
  bool inverted = false;  ///< the picture was dark on light
};

/// As MNIST was made (LeCun, Cortes, Burges): light on dark, cropped to what is drawn, scaled with
/// its proportions into 20 x 20, placed so that the centre of mass is the centre of 28 x 28. The
/// background is the median of the border. Throws DataError, `name` in front, when nothing is
/// drawn.
[[nodiscard]] DigitImage prepare_digit(const GreyImage& image, const std::string& name);

}  // namespace lockstep::apps
