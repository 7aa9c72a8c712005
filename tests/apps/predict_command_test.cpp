// `mnist_multi_gpu predict` on pictures made from drawn digits: inverted, shifted, enlarged.
#include <algorithm>

#include <sys/stat.h>

#include "lockstep/data/synthetic.h"

#include "apps/pictures.h"
#include "apps/process.h"
#include "apps/training_run.h"
#include "support/catch.h"
#include "support/throws.h"

namespace lockstep {

using test::contains;
using test::json_lines;
using test::Pixels;
using test::run_process;
using test::ScratchFolder;

namespace {

constexpr std::size_t kSide = 28;

struct Picture {
  std::size_t side = 0;
  Pixels pixels;
};

/// The digit `times` as large, its corner at (shift, 2 * shift), on paper `kSide * times + 3 *
/// shift` wide.
Picture picture_of(const std::uint8_t* digit, std::size_t times, std::size_t shift, bool inverted) {
  Picture picture{kSide * times + 3 * shift, {}};
  picture.pixels.assign(picture.side * picture.side, 0);
  for (std::size_t y = 0; y < kSide * times; ++y) {
    for (std::size_t x = 0; x < kSide * times; ++x) {
      picture.pixels[(y + 2 * shift) * picture.side + x + shift] =
          digit[y / times * kSide + x / times];
    }
  }
  if (inverted) {
    for (std::uint8_t& value : picture.pixels) value = static_cast<std::uint8_t>(255 - value);
  }
  return picture;
}

}  // namespace

TEST_CASE("predict: digits are known however they are drawn", "[apps]") {
  const ScratchFolder folder;
  REQUIRE(run_process("mnist_multi_gpu",
                      {"--dataset", "synthetic", "--limit-train", "6000", "--limit-validation", "0",
                       "--limit-test", "0", "--out", folder / "run", "--quiet"})
              .code == 0);
  constexpr std::int64_t kPictures = 40;
  const Dataset digits = synthetic_digits({.train = 1, .validation = 0, .test = kPictures}).test;
  std::vector<std::string> arguments{"predict", "--json", "--weights", folder / "run"};
  for (std::size_t i = 0; i < kPictures; ++i) {
    const Picture picture =
        picture_of(digits.bytes() + i * kSide * kSide, 1 + i % 5, i % 3 * 7, i % 2 == 1);
    const std::string path = folder / (std::to_string(i) + (i % 4 < 2 ? ".png" : ".pgm"));
    (i % 4 < 2 ? test::write_png : test::write_pgm)(path, picture.side, picture.side,
                                                    picture.pixels);
    arguments.push_back(path);
  }
  const auto run = run_process("mnist_multi_gpu", arguments);
  REQUIRE(run.code == 0);
  const auto events = json_lines(run.out);
  REQUIRE(events.size() == kPictures);
  int right = 0;
  for (std::size_t i = 0; i < kPictures; ++i) {
    CHECK(events[i]["inverted"] == (i % 2 == 1));
    CHECK(events[i]["probabilities"].size() == 10);
    right += events[i]["digit"] == digits.classes()[i] ? 1 : 0;
  }
  INFO(right << " of " << kPictures);
  CHECK(right >= 20);  // chance gives 4
}

TEST_CASE("predict: human output shows what the network sees; errors name the file", "[apps]") {
  const ScratchFolder folder;
  REQUIRE(run_process("mnist_multi_gpu", test::small_training(folder / "run", {"--quiet"})).code ==
          0);
  const Dataset digits = synthetic_digits({.train = 1, .validation = 0, .test = 1}).test;
  const Picture picture = picture_of(digits.bytes(), 3, 5, true);
  test::write_png(folder / "digit.png", picture.side, picture.side, picture.pixels);
  const auto run = run_process("mnist_multi_gpu",
                               {"predict", "--weights", folder / "run", folder / "digit.png"});
  CHECK(run.code == 0);
  CHECK(contains(run.out, "digit.png: "));
  CHECK(contains(run.out, "light background: inverted"));
  CHECK(contains(run.out, "@@"));
  CHECK(std::count(run.out.begin(), run.out.end(), '\n') == 30);
  const auto bad =
      run_process("mnist_multi_gpu", {"predict", "--weights", folder / "run", folder / "no.png"});
  CHECK(bad.code == 3);
  CHECK(contains(bad.err, "no.png: cannot be read"));
}

TEST_CASE("predict: a pipe is refused; nobody may ever write to it", "[apps]") {
  const ScratchFolder folder;
  REQUIRE(run_process("mnist_multi_gpu", test::small_training(folder / "run", {"--quiet"})).code ==
          0);
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  const auto run =
      run_process("mnist_multi_gpu", {"predict", "--weights", folder / "run", folder / "pipe"});
  CHECK(run.code == 3);
  CHECK(contains(run.err, "want a PNG, JPEG or PGM file"));
}

}  // namespace lockstep
