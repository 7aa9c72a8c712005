// Bringing pictures to MNIST's form, and reading them from files.
#include "apps/digit_image.h"

#include <algorithm>
#include <fstream>
#include <numeric>

#include "lockstep/core/error.h"

#include "apps/pictures.h"
#include "apps/process.h"
#include "apps/read_text.h"
#include "support/catch.h"
#include "support/throws.h"

namespace lockstep::apps {

using test::contains;
using test::message_of;
using test::ScratchFolder;

namespace {

/// A filled rectangle of `ink` on `paper`.
GreyImage rectangle(std::size_t width, std::size_t height, std::size_t x0, std::size_t y0,
                    std::size_t w, std::size_t h, float paper, float ink) {
  GreyImage image{width, height, std::vector<float>(width * height, paper)};
  for (std::size_t y = y0; y < y0 + h; ++y) {
    for (std::size_t x = x0; x < x0 + w; ++x) image.values[y * width + x] = ink;
  }
  return image;
}

struct Box {
  std::size_t x0 = kDigitSide, x1 = 0, y0 = kDigitSide, y1 = 0;
};

Box drawn(const DigitImage& digit) {
  Box box;
  for (std::size_t i = 0; i < digit.pixels.size(); ++i) {
    if (digit.pixels[i] == 0) continue;
    box.x0 = std::min(box.x0, i % kDigitSide);
    box.x1 = std::max(box.x1, i % kDigitSide + 1);
    box.y0 = std::min(box.y0, i / kDigitSide);
    box.y1 = std::max(box.y1, i / kDigitSide + 1);
  }
  return box;
}

}  // namespace

TEST_CASE("digit: any rectangle becomes 20 high, centred, with its proportions", "[apps]") {
  const DigitImage digit =
      prepare_digit(rectangle(300, 200, 190, 20, 60, 120, 0.0F, 0.8F), "picture");
  CHECK_FALSE(digit.inverted);
  const Box box = drawn(digit);
  CHECK(box.x0 == 9);
  CHECK(box.x1 == 19);
  CHECK(box.y0 == 4);
  CHECK(box.y1 == 24);
  CHECK(digit.pixels[14 * kDigitSide + 14] == 1.0F);
}

TEST_CASE("digit: dark on light is inverted, and then the same", "[apps]") {
  const DigitImage light = prepare_digit(rectangle(50, 50, 5, 5, 12, 30, 0.1F, 0.9F), "light");
  const DigitImage dark = prepare_digit(rectangle(50, 50, 5, 5, 12, 30, 0.9F, 0.1F), "dark");
  CHECK_FALSE(light.inverted);
  CHECK(dark.inverted);
  CHECK(light.pixels == dark.pixels);
}

TEST_CASE("digit: small pictures are enlarged, one pixel too", "[apps]") {
  const Box box = drawn(prepare_digit(rectangle(9, 9, 1, 1, 2, 5, 0, 1), "small"));
  CHECK(box.y1 - box.y0 == 20);
  CHECK(box.x1 - box.x0 == 8);
  const Box dot = drawn(prepare_digit(rectangle(5, 5, 4, 4, 1, 1, 0, 1), "dot"));
  CHECK(dot.x1 - dot.x0 == 20);
}

TEST_CASE("digit: the centre of mass decides, not the box", "[apps]") {
  // An L: its mass lies low and left, so it is moved up and right of the middle.
  GreyImage image = rectangle(60, 60, 10, 10, 8, 40, 0, 1);
  for (std::size_t y = 42; y < 50; ++y) {
    for (std::size_t x = 10; x < 50; ++x) image.values[y * 60 + x] = 1;
  }
  const Box box = drawn(prepare_digit(image, "L"));
  CHECK(box.x0 > 4);
  CHECK(box.y0 < 4);
}

TEST_CASE("digit: an empty picture is refused by name", "[apps]") {
  const std::string text = message_of<DataError>(
      [] { static_cast<void>(prepare_digit(rectangle(20, 20, 0, 0, 0, 0, 1, 0), "page.png")); });
  CHECK(contains(text, "page.png: nothing is drawn"));
}

TEST_CASE("picture files: PGM and PNG give the same values", "[apps]") {
  const ScratchFolder folder;
  const std::vector<std::uint8_t> bytes{0, 51, 102, 153, 204, 255};
  test::write_pgm(folder / "a.pgm", 3, 2, bytes);
  test::write_png(folder / "a.png", 3, 2, bytes);
  for (const char* name : {"a.pgm", "a.png"}) {
    const GreyImage image = read_image(folder / name);
    CHECK(image.width == 3);
    CHECK(image.height == 2);
    REQUIRE(image.values.size() == 6);
    for (std::size_t i = 0; i < 6; ++i)
      CHECK(image.values[i] == Approx(0.2 * static_cast<double>(i)));
  }
}

TEST_CASE("picture files: comments, colours and other highest values of PGM and PPM", "[apps]") {
  const ScratchFolder folder;
  std::ofstream(folder / "c.pgm") << "P5 # made by hand\n2\n# and so on\n1 100\n2d";
  const GreyImage grey = read_image(folder / "c.pgm");
  CHECK(grey.values[0] == Approx(0.5));
  CHECK(grey.values[1] == Approx(1));
  std::ofstream(folder / "c.ppm") << "P6 1 1 100\nddd";
  CHECK(read_image(folder / "c.ppm").values[0] == Approx(1));
}

TEST_CASE("picture files: what cannot be read is refused by name", "[apps]") {
  const ScratchFolder folder;
  const auto refusal = [&](const std::string& name) {
    return message_of<DataError>([&] { static_cast<void>(read_image(folder / name)); });
  };
  CHECK(contains(refusal("missing.png"), "missing.png: cannot be read"));
  CHECK(contains(refusal("."), "cannot be read"));
  std::ofstream(folder / "text.png") << "<html>";
  CHECK(contains(refusal("text.png"), "text.png: not a picture"));
  std::ofstream(folder / "empty.png");
  CHECK(contains(refusal("empty.png"), "not a picture"));
  std::ofstream(folder / "huge.pgm") << "P5 30000 30000 255\n";
  CHECK(contains(refusal("huge.pgm"), "want at most"));
  std::ofstream(folder / "short.pgm") << "P5 30 30 255\nabc";
  CHECK(contains(refusal("short.pgm"), "short.pgm: truncated; 30 x 30 pixels need 913 bytes"));
  std::ofstream(folder / "deep.pgm") << "P5 3 3 65535\nabc";
  CHECK(contains(refusal("deep.pgm"), "header is damaged"));
  std::ofstream(folder / "header.pgm") << "P5 3";
  CHECK(contains(refusal("header.pgm"), "header is damaged"));
  test::write_png(folder / "whole.png", 20, 20, std::vector<std::uint8_t>(400, 7));
  std::filesystem::resize_file(folder / "whole.png", 50);
  test::write_png(folder / "escape.png", 3, 2, std::vector<std::uint8_t>(6, 7));
  std::string chunk = test::read_text(folder / "escape.png");
  chunk.replace(chunk.find("IDAT"), 4, "\x1b[2J");
  std::ofstream(folder / "escape.png", std::ios::binary) << chunk;
  CHECK(contains(refusal("escape.png"), "(?[2J PNG chunk not known)"));
  // Nor a chunk the memory that its length promises.
  test::write_png(folder / "promise.png", 3, 2, std::vector<std::uint8_t>(6, 7));
  std::string promise = test::read_text(folder / "promise.png");
  promise.replace(promise.find("IDAT") - 4, 4, std::string("\x30\x00\x00\x00", 4));
  std::ofstream(folder / "promise.png", std::ios::binary) << promise;
  CHECK(contains(refusal("promise.png"), "promise.png: not a picture that can be read (a chunk"));
  // A JPEG's Huffman tables must not be longer than what stb keeps of them.
  std::string table("\xFF\xD8\xFF\xC4\x00\x13\x00", 7);
  table.append(15, '\x11').push_back('\x02');  // 15 * 17 + 2 codes
  std::ofstream(folder / "codes.jpg", std::ios::binary) << table;
  CHECK(contains(refusal("codes.jpg"), "(its Huffman tables are damaged)"));
  // Nor may a scan name one that is not there.
  std::ofstream(folder / "scan.jpg", std::ios::binary)
      << std::string("\xFF\xD8\xFF\xDA\x00\x08\x01\x01\x00\x00\x3F\x00", 12);
  CHECK(contains(refusal("scan.jpg"), "(its Huffman tables are damaged)"));
  // A header alone must not cost the memory of the picture that it promises.
  test::write_png(folder / "large.png", 20, 20, std::vector<std::uint8_t>(400, 7));
  std::string png = test::read_text(folder / "large.png");
  png.replace(16, 8, std::string("\x00\x00\x20\x00\x00\x00\x20\x00", 8));
  std::ofstream(folder / "large.png", std::ios::binary) << png;
  CHECK(contains(refusal("large.png"), "8192 x 8192 pixels do not fit into its " +
                                           std::to_string(png.size()) + " bytes"));
  CHECK(contains(refusal("whole.png"), "whole.png: not a picture"));
}

}  // namespace lockstep::apps
