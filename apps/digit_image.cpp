#include "apps/digit_image.h"

#include <algorithm>
#include <cmath>

#include "lockstep/core/error.h"

namespace lockstep::apps {

namespace {

constexpr std::size_t kBoxSide = 20;
/// Least difference between the digit and its background.
constexpr float kLeastContrast = 0.1F;
/// Share of the full contrast from which on a pixel counts as drawn.
constexpr float kDrawn = 0.25F;

float border_median(const GreyImage& image) {
  std::vector<float> border;
  for (std::size_t x = 0; x < image.width; ++x) {
    border.push_back(image.at(x, 0));
    border.push_back(image.at(x, image.height - 1));
  }
  for (std::size_t y = 0; y < image.height; ++y) {
    border.push_back(image.at(0, y));
    border.push_back(image.at(image.width - 1, y));
  }
  const auto middle = border.begin() + static_cast<std::ptrdiff_t>(border.size() / 2);
  std::nth_element(border.begin(), middle, border.end());
  return *middle;
}

/// Ink: 0 is background and 1 what differs from it most, on the side where more differs.
GreyImage to_ink(const GreyImage& image, const std::string& name, bool& inverted) {
  const float background = border_median(image);
  const auto [low, high] = std::minmax_element(image.values.begin(), image.values.end());
  inverted = background - *low > *high - background;
  const float contrast = inverted ? background - *low : *high - background;
  if (contrast < kLeastContrast) {
    throw DataError(message(name,
                            ": nothing is drawn, all pixels are nearly alike; want one digit on an "
                            "even background"));
  }
  GreyImage ink = image;
  for (float& value : ink.values) {
    const float difference = inverted ? background - value : value - background;
    value = std::clamp(difference / contrast, 0.0F, 1.0F);
  }
  return ink;
}

/// The smallest part with everything that is drawn.
GreyImage cropped(const GreyImage& ink) {
  std::size_t x0 = ink.width;
  std::size_t x1 = 0;
  std::size_t y0 = ink.height;
  std::size_t y1 = 0;
  for (std::size_t y = 0; y < ink.height; ++y) {
    for (std::size_t x = 0; x < ink.width; ++x) {
      if (ink.at(x, y) < kDrawn) continue;
      x0 = std::min(x0, x);
      x1 = std::max(x1, x + 1);
      y0 = std::min(y0, y);
      y1 = std::max(y1, y + 1);
    }
  }
  GreyImage part{x1 - x0, y1 - y0, {}};
  for (std::size_t y = y0; y < y1; ++y) {
    for (std::size_t x = x0; x < x1; ++x) part.values.push_back(ink.at(x, y));
  }
  return part;
}

/// `values` (rows of `from`) with every row resampled to `to` values by a triangle filter as wide
/// as the larger of the two pixel sizes; the result is transposed, so that two calls do both axes.
std::vector<float> resample_rows(const std::vector<float>& values, std::size_t from,
                                 std::size_t to) {
  const std::size_t rows = values.size() / from;
  const double step = static_cast<double>(from) / static_cast<double>(to);
  const double reach = std::max(step, 1.0);
  std::vector<float> result(rows * to);
  for (std::size_t i = 0; i < to; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * step - 0.5;
    const auto first = static_cast<std::size_t>(std::max(0.0, std::ceil(centre - reach)));
    const auto last = std::min(from - 1, static_cast<std::size_t>(std::max(0.0, centre + reach)));
    for (std::size_t row = 0; row < rows; ++row) {
      double sum = 0;
      double weights = 0;
      for (std::size_t j = first; j <= last; ++j) {
        const double weight = 1 - std::abs(static_cast<double>(j) - centre) / reach;
        if (weight <= 0) continue;
        sum += weight * values[row * from + j];
        weights += weight;
      }
      result[i * rows + row] = static_cast<float>(weights > 0 ? sum / weights : 0);
    }
  }
  return result;
}

GreyImage fitted(const GreyImage& part) {
  const double scale =
      static_cast<double>(kBoxSide) / static_cast<double>(std::max(part.width, part.height));
  const auto side = [&](std::size_t length) {
    return static_cast<std::size_t>(std::max(1.0, std::round(static_cast<double>(length) * scale)));
  };
  GreyImage box{side(part.width), side(part.height), {}};
  box.values =
      resample_rows(resample_rows(part.values, part.width, box.width), part.height, box.height);
  return box;
}

/// Where a box of `length` goes so that `mass_centre` of it lies in the middle of the field.
std::size_t place(double mass_centre, std::size_t length) {
  const double most = static_cast<double>(kDigitSide - length);
  return static_cast<std::size_t>(
      std::clamp(std::round(static_cast<double>(kDigitSide) / 2 - mass_centre), 0.0, most));
}

}  // namespace

DigitImage prepare_digit(const GreyImage& image, const std::string& name) {
  DigitImage digit;
  const GreyImage box = fitted(cropped(to_ink(image, name, digit.inverted)));
  double mass = 0;
  double mass_x = 0;
  double mass_y = 0;
  for (std::size_t y = 0; y < box.height; ++y) {
    for (std::size_t x = 0; x < box.width; ++x) {
      const double value = box.at(x, y);
      mass += value;
      mass_x += value * (static_cast<double>(x) + 0.5);
      mass_y += value * (static_cast<double>(y) + 0.5);
    }
  }
  const std::size_t left = place(mass > 0 ? mass_x / mass : 0, box.width);
  const std::size_t top = place(mass > 0 ? mass_y / mass : 0, box.height);
  digit.pixels.assign(kDigitSide * kDigitSide, 0);
  for (std::size_t y = 0; y < box.height; ++y) {
    for (std::size_t x = 0; x < box.width; ++x) {
      digit.pixels[(top + y) * kDigitSide + left + x] = std::round(box.at(x, y) * 255) / 255;
    }
  }
  return digit;
}

}  // namespace lockstep::apps
