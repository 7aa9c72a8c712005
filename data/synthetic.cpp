// Digits from a few strokes each. Only sums, products, quotients and square roots of floats are
// used, and this file is compiled without fused multiply-add, so that the pixels are equal on every
// machine.
#include "lockstep/data/synthetic.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/random.h"

namespace lockstep {
namespace {

constexpr int kSide = 28;
constexpr int kPixels = kSide * kSide;
constexpr int kClasses = 10;
constexpr int kCurvePieces = 4;  // line pieces between two points of a curve

struct Point {
  float x = 0;
  float y = 0;
};

enum class StrokeKind { lines, curve, loop };

/// Points in the unit square, y downwards. A curve goes smoothly through its points, a loop ends
/// where it began.
struct Stroke {
  StrokeKind kind = StrokeKind::lines;
  std::vector<Point> points;
};

using Glyph = std::vector<Stroke>;

std::array<Glyph, kClasses> make_glyphs() {
  using enum StrokeKind;
  return {{
      {{loop,
        {{.50F, .03F},
         {.76F, .18F},
         {.84F, .50F},
         {.75F, .83F},
         {.50F, .97F},
         {.25F, .83F},
         {.16F, .50F},
         {.24F, .18F}}}},
      {{lines, {{.34F, .24F}, {.54F, .04F}, {.54F, .96F}}}},
      {{curve,
        {{.18F, .27F},
         {.32F, .08F},
         {.56F, .04F},
         {.77F, .18F},
         {.73F, .41F},
         {.48F, .68F},
         {.18F, .95F}}},
       {lines, {{.18F, .95F}, {.84F, .94F}}}},
      {{curve, {{.20F, .14F}, {.48F, .04F}, {.75F, .17F}, {.69F, .38F}, {.42F, .47F}}},
       {curve,
        {{.42F, .47F}, {.73F, .55F}, {.82F, .75F}, {.60F, .95F}, {.32F, .95F}, {.16F, .83F}}}},
      {{lines, {{.52F, .04F}, {.16F, .62F}, {.88F, .62F}}}, {lines, {{.68F, .34F}, {.66F, .97F}}}},
      {{lines, {{.80F, .05F}, {.31F, .05F}, {.25F, .46F}}},
       {curve,
        {{.25F, .46F}, {.53F, .38F}, {.80F, .54F}, {.78F, .81F}, {.52F, .96F}, {.18F, .87F}}}},
      {{curve,
        {{.69F, .05F},
         {.42F, .20F},
         {.24F, .49F},
         {.23F, .77F},
         {.42F, .96F},
         {.67F, .92F},
         {.79F, .72F},
         {.65F, .52F},
         {.42F, .52F},
         {.24F, .70F}}}},
      {{lines, {{.16F, .06F}, {.84F, .06F}}}, {curve, {{.84F, .06F}, {.59F, .44F}, {.42F, .96F}}}},
      {{loop, {{.50F, .03F}, {.73F, .12F}, {.72F, .35F}, {.50F, .47F}, {.28F, .35F}, {.27F, .12F}}},
       {loop,
        {{.50F, .47F}, {.78F, .60F}, {.79F, .83F}, {.50F, .97F}, {.21F, .83F}, {.22F, .60F}}}},
      {{loop, {{.76F, .25F}, {.61F, .06F}, {.36F, .06F}, {.22F, .27F}, {.34F, .49F}, {.62F, .46F}}},
       {curve, {{.76F, .22F}, {.74F, .58F}, {.60F, .97F}}}},
  }};
}

/// Random numbers of one sample.
class Draws {
 public:
  Draws(const RandomKey& key, std::uint32_t sample) : key_(key), sample_(sample) {}

  std::uint32_t word() {
    if (used_ == words_.size()) {
      words_ = random_block(key_, sample_, block_++);
      used_ = 0;
    }
    return words_[used_++];
  }
  /// Uniform in [low, high).
  float between(float low, float high) { return low + (high - low) * uniform_float(word()); }
  /// Uniform in [-reach, reach).
  float around_zero(float reach) { return between(-reach, reach); }

 private:
  RandomKey key_;
  std::uint32_t sample_;
  PhiloxBlock words_{};
  std::size_t used_ = words_.size();
  std::uint32_t block_ = 0;
};

/// A hand's way of writing: bends the unit square a little, then maps it to pixels.
class Hand {
 public:
  explicit Hand(Draws& draws)
      : bend_x_(draws.around_zero(0.22F)),
        bend_y_(draws.around_zero(0.18F)),
        swell_(draws.around_zero(0.25F)) {
    const float width = draws.between(9.0F, 18.0F);
    const float height = draws.between(14.5F, 21.5F);
    const float shear = draws.around_zero(0.40F);
    // The tangent of half the angle gives cosine and sine without a call of the mathematical
    // library.
    const float half = draws.around_zero(0.17F);
    const float cosine = (1.0F - half * half) / (1.0F + half * half);
    const float sine = 2.0F * half / (1.0F + half * half);
    xx_ = cosine * width;
    xy_ = cosine * shear * height - sine * height;
    yx_ = sine * width;
    yy_ = sine * shear * height + cosine * height;
    shift_ = {draws.between(11.0F, 16.0F), draws.between(11.5F, 15.5F)};
    half_width_ = draws.between(0.6F, 1.9F);
    ink_ = draws.between(190.0F, 255.0F);
  }

  [[nodiscard]] Point pixel(Point at) const {
    const float x = at.x - 0.5F;
    const float y = at.y - 0.5F;
    const float bent_x = x + bend_x_ * (y * y * 2.0F - 0.25F) + swell_ * x * y;
    const float bent_y = y + bend_y_ * (x * x * 2.0F - 0.25F);
    return {shift_.x + xx_ * bent_x + xy_ * bent_y, shift_.y + yx_ * bent_x + yy_ * bent_y};
  }
  [[nodiscard]] float half_width() const { return half_width_; }
  [[nodiscard]] float ink() const { return ink_; }

 private:
  float bend_x_;
  float bend_y_;
  float swell_;
  float xx_ = 0;
  float xy_ = 0;
  float yx_ = 0;
  float yy_ = 0;
  Point shift_;
  float half_width_ = 0;
  float ink_ = 0;
};

/// The squared distance of every pixel's centre from the strokes, where it is small enough to
/// matter.
class Canvas {
 public:
  explicit Canvas(float half_width) : reach_(half_width + 0.5F) {
    squared_.fill(std::numeric_limits<float>::max());
  }

  void line(Point from, Point to) {
    const float dx = to.x - from.x;
    const float dy = to.y - from.y;
    const float length = dx * dx + dy * dy;
    const float inverse = length > 0.0F ? 1.0F / length : 0.0F;
    const auto [left, right] = span_of(from.x, to.x);
    const auto [top, bottom] = span_of(from.y, to.y);
    for (int row = top; row < bottom; ++row) {
      float* line_of_pixels = squared_.data() + static_cast<std::ptrdiff_t>(row) * kSide;
      const float y = static_cast<float>(row) + 0.5F - from.y;
      for (int column = left; column < right; ++column) {
        const float x = static_cast<float>(column) + 0.5F - from.x;
        const float along = std::clamp((x * dx + y * dy) * inverse, 0.0F, 1.0F);
        const float off_x = x - along * dx;
        const float off_y = y - along * dy;
        line_of_pixels[column] = std::min(line_of_pixels[column], off_x * off_x + off_y * off_y);
      }
    }
  }

  void write(float ink, std::uint8_t* pixels) const {
    for (int i = 0; i < kPixels; ++i) {
      const float cover =
          squared_[i] < reach_ * reach_ ? std::min(reach_ - std::sqrt(squared_[i]), 1.0F) : 0.0F;
      pixels[i] = static_cast<std::uint8_t>(std::lround(cover * ink));
    }
  }

 private:
  /// Pixels that a piece between two coordinates can touch: first and one past the last.
  [[nodiscard]] std::pair<int, int> span_of(float a, float b) const {
    const float low = std::clamp(std::min(a, b) - reach_, 0.0F, static_cast<float>(kSide));
    const float high = std::clamp(std::max(a, b) + reach_, 0.0F, static_cast<float>(kSide - 1));
    return {static_cast<int>(low), static_cast<int>(high) + 1};
  }

  float reach_;
  std::array<float, kPixels> squared_;
};

/// Catmull-Rom between b and c.
Point on_curve(Point a, Point b, Point c, Point d, float t) {
  const auto blend = [t](float p, float q, float r, float s) {
    return 0.5F * (2.0F * q + t * ((r - p) + t * ((2.0F * p - 5.0F * q + 4.0F * r - s) +
                                                  t * (3.0F * (q - r) + s - p))));
  };
  return {blend(a.x, b.x, c.x, d.x), blend(a.y, b.y, c.y, d.y)};
}

void draw(Canvas& canvas, StrokeKind kind, std::span<const Point> points) {
  const auto count = static_cast<std::ptrdiff_t>(points.size());
  const auto at = [&](std::ptrdiff_t i) {
    return points[kind == StrokeKind::loop ? (i + count) % count
                                           : std::clamp<std::ptrdiff_t>(i, 0, count - 1)];
  };
  const std::ptrdiff_t pieces = kind == StrokeKind::loop ? count : count - 1;
  for (std::ptrdiff_t i = 0; i < pieces; ++i) {
    if (kind == StrokeKind::lines) {
      canvas.line(at(i), at(i + 1));
      continue;
    }
    Point from = at(i);
    for (int step = 1; step <= kCurvePieces; ++step) {
      const float t = static_cast<float>(step) / static_cast<float>(kCurvePieces);
      const Point to = on_curve(at(i - 1), at(i), at(i + 1), at(i + 2), t);
      canvas.line(from, to);
      from = to;
    }
  }
}

void draw_digit(const Glyph& glyph, Draws& draws, std::uint8_t* pixels) {
  constexpr float kTremble = 0.055F;
  const Hand hand(draws);
  Canvas canvas(hand.half_width());
  std::array<Point, 12> points;
  for (const Stroke& stroke : glyph) {
    for (std::size_t i = 0; i < stroke.points.size(); ++i) {
      const float x = stroke.points[i].x + draws.around_zero(kTremble);
      const float y = stroke.points[i].y + draws.around_zero(kTremble);
      points[i] = hand.pixel({x, y});
    }
    draw(canvas, stroke.kind, std::span(points).first(stroke.points.size()));
  }
  canvas.write(hand.ink(), pixels);
}

/// Ten samples in a row are the ten digits in random order, whatever the number of samples.
std::array<std::int32_t, kClasses> labels_of_ten(const RandomKey& key, std::uint32_t ten) {
  std::array<std::int32_t, kClasses> labels{};
  Draws draws(key, ten);
  for (int i = 0; i < kClasses; ++i) {
    const auto other =
        static_cast<int>((std::uint64_t{draws.word()} * static_cast<std::uint64_t>(i + 1)) >> 32);
    labels[i] = labels[other];
    labels[other] = i;
  }
  return labels;
}

Dataset draw_split(const std::array<Glyph, kClasses>& glyphs, std::uint64_t seed,
                   std::uint32_t split, std::int64_t count) {
  // Two streams for each split: one for the images, one for the order of the digits.
  const RandomKey image_key{
      .seed = seed, .purpose = RandomPurpose::synthetic, .item = 2 * split, .epoch = 0};
  const RandomKey label_key{
      .seed = seed, .purpose = RandomPurpose::synthetic, .item = 2 * split + 1, .epoch = 0};
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(count) * kPixels);
  std::vector<std::int32_t> classes(static_cast<std::size_t>(count));
  std::array<std::int32_t, kClasses> labels{};
  for (std::size_t i = 0; i < classes.size(); ++i) {
    if (i % kClasses == 0)
      labels = labels_of_ten(label_key, static_cast<std::uint32_t>(i / kClasses));
    classes[i] = labels[i % kClasses];
    Draws draws(image_key, static_cast<std::uint32_t>(i));
    draw_digit(glyphs[static_cast<std::size_t>(classes[i])], draws, pixels.data() + i * kPixels);
  }
  return Dataset::from_bytes("synthetic", {1, kSide, kSide}, std::move(pixels), std::move(classes),
                             kClasses);
}

void check_count(const char* split, std::int64_t count) {
  if (count < 0 || count > std::numeric_limits<std::int32_t>::max()) {
    throw UsageError(
        message("synthetic_digits: ", split, " is ", count, ", expected 0 to 2^31 - 1 samples"));
  }
}

}  // namespace

DatasetSplits synthetic_digits(const SyntheticOptions& options) {
  check_count("train", options.train);
  check_count("validation", options.validation);
  check_count("test", options.test);
  const std::array<Glyph, kClasses> glyphs = make_glyphs();
  return {.train = draw_split(glyphs, options.seed, 0, options.train),
          .validation = draw_split(glyphs, options.seed, 1, options.validation),
          .test = draw_split(glyphs, options.seed, 2, options.test)};
}

}  // namespace lockstep
