// Drawn digits: the same on every machine, balanced, different in every split, and learnable.
#include "lockstep/data/synthetic.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "lockstep/core/error.h"

#include "support/catch.h"

namespace {

using namespace lockstep;

constexpr std::int64_t kPixels = 28 * 28;

std::vector<std::uint8_t> image(const Dataset& data, std::int64_t i) {
  return {data.bytes() + i * kPixels, data.bytes() + (i + 1) * kPixels};
}

/// FNV-1a over pixels and labels.
std::uint64_t hash_of(const Dataset& data) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  const auto add = [&hash](std::uint8_t byte) { hash = (hash ^ byte) * 0x100000001b3ULL; };
  std::for_each(data.bytes(), data.bytes() + data.size() * kPixels, add);
  std::for_each(data.classes(), data.classes() + data.size(),
                [&](std::int32_t label) { add(static_cast<std::uint8_t>(label)); });
  return hash;
}

using Means = std::array<std::array<double, kPixels>, 10>;

Means means_of(const Dataset& data) {
  Means means{};
  std::array<int, 10> counts{};
  for (std::int64_t i = 0; i < data.size(); ++i) {
    const auto label = static_cast<std::size_t>(data.classes()[i]);
    ++counts[label];
    for (std::int64_t p = 0; p < kPixels; ++p) means[label][p] += data.bytes()[i * kPixels + p];
  }
  for (std::size_t label = 0; label < 10; ++label) {
    for (double& value : means[label]) value /= counts[label];
  }
  return means;
}

double nearest_mean_accuracy(const Means& means, const Dataset& data) {
  int correct = 0;
  for (std::int64_t i = 0; i < data.size(); ++i) {
    double best = std::numeric_limits<double>::max();
    int guess = -1;
    for (int label = 0; label < 10; ++label) {
      double distance = 0;
      for (std::int64_t p = 0; p < kPixels; ++p) {
        const double off = means[label][p] - data.bytes()[i * kPixels + p];
        distance += off * off;
      }
      if (distance < best) {
        best = distance;
        guess = label;
      }
    }
    correct += guess == data.classes()[i] ? 1 : 0;
  }
  return static_cast<double>(correct) / static_cast<double>(data.size());
}

}  // namespace

TEST_CASE("the sizes are those asked for, with MNIST's as the default") {
  const SyntheticOptions defaults;
  CHECK(defaults.train == 55000);
  CHECK(defaults.validation == 5000);
  CHECK(defaults.test == 10000);
  const DatasetSplits splits = synthetic_digits({.train = 21, .validation = 0, .test = 5});
  CHECK(splits.train.size() == 21);
  CHECK(splits.validation.size() == 0);
  CHECK(splits.test.size() == 5);
  CHECK(splits.train.sample_shape() == Shape{1, 28, 28});
  CHECK(splits.train.class_count() == 10);
  CHECK(splits.train.name() == "synthetic");
  CHECK_THROWS_AS(synthetic_digits({.train = -1}), UsageError);
  CHECK_THROWS_AS(synthetic_digits({.test = std::int64_t{1} << 31}), UsageError);
}

TEST_CASE("the first hundred images never change") {
  const DatasetSplits splits = synthetic_digits({.train = 100, .validation = 100, .test = 100});
  CHECK(hash_of(splits.train) == 0x19b2060081cbb745ULL);
  CHECK(hash_of(splits.validation) == 0x0f9ec9c00e20d486ULL);
  CHECK(hash_of(splits.test) == 0x1b02ccd3055b9bacULL);
}

TEST_CASE("a sample depends on seed, split and index alone") {
  const DatasetSplits some =
      synthetic_digits({.train = 33, .validation = 10, .test = 10, .seed = 4});
  const DatasetSplits more =
      synthetic_digits({.train = 50, .validation = 20, .test = 47, .seed = 4});
  const DatasetSplits other =
      synthetic_digits({.train = 33, .validation = 10, .test = 10, .seed = 5});
  CHECK(hash_of(some.train) == hash_of(more.train.take(33)));
  CHECK(hash_of(some.validation) == hash_of(more.validation.take(10)));
  CHECK(hash_of(some.test) == hash_of(more.test.take(10)));
  CHECK(hash_of(some.train) != hash_of(other.train));
}

TEST_CASE("no image is in two splits or twice in one") {
  const DatasetSplits splits = synthetic_digits({.train = 500, .validation = 500, .test = 500});
  std::set<std::string> images;
  for (const Dataset* data : {&splits.train, &splits.validation, &splits.test}) {
    for (std::int64_t i = 0; i < data->size(); ++i) {
      const std::vector<std::uint8_t> pixels = image(*data, i);
      images.emplace(pixels.begin(), pixels.end());
    }
  }
  CHECK(images.size() == 1500);
}

TEST_CASE("every ten samples are the ten digits, in many orders") {
  const Dataset data = synthetic_digits({.train = 1000, .validation = 0, .test = 0}).train;
  std::set<std::vector<std::int32_t>> orders;
  for (std::int64_t first = 0; first < data.size(); first += 10) {
    std::vector<std::int32_t> labels(data.classes() + first, data.classes() + first + 10);
    orders.insert(labels);
    std::sort(labels.begin(), labels.end());
    REQUIRE(labels == std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  }
  CHECK(orders.size() == 100);
}

TEST_CASE("every image holds ink and paper, and grey at the edges of strokes") {
  const Dataset data = synthetic_digits({.train = 300, .validation = 0, .test = 0}).train;
  for (std::int64_t i = 0; i < data.size(); ++i) {
    INFO("image " << i);
    const std::vector<std::uint8_t> pixels = image(data, i);
    const auto dark = std::count(pixels.begin(), pixels.end(), 0);
    const auto strongest = *std::max_element(pixels.begin(), pixels.end());
    const auto grey = std::count_if(pixels.begin(), pixels.end(), [&](std::uint8_t value) {
      return value > 0 && value < strongest;
    });
    CHECK(strongest >= 190);
    CHECK(dark > kPixels / 2);
    CHECK(grey > 10);
  }
}

TEST_CASE("the digits can be told apart, but not by their mean alone") {
  const DatasetSplits splits = synthetic_digits({.train = 3000, .validation = 0, .test = 1000});
  const double accuracy = nearest_mean_accuracy(means_of(splits.train), splits.test);
  CHECK(accuracy > 0.5);
  CHECK(accuracy < 0.9);
}
