#include "lockstep/kernels/dropout.h"

#include <cmath>

#include "kernels/samples.h"
#include "support/throws.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

constexpr DropoutKey kKey{.seed = 0x123456789ABCDEF0, .layer = 5};

struct Run {
  std::vector<float> y;
  std::vector<std::uint8_t> mask;
};

/// One forward pass over samples with the numbers `index`, outputs filled with rubbish before.
Run forward(Context& context, float rate, std::uint32_t epoch,
            const std::vector<std::int32_t>& index, std::int64_t features,
            const std::vector<float>& x) {
  Run run{not_written(static_cast<std::int64_t>(x.size())),
          std::vector<std::uint8_t>(x.size(), 77)};
  const Shape shape{static_cast<std::int64_t>(index.size()), features};
  StepState state;
  state.epoch = epoch;
  dropout_forward(context, rate, kKey, &state, index.data(), {x.data(), shape, Layout::n16},
                  {run.y.data(), shape, Layout::n16}, {run.mask.data(), shape, Layout::n16});
  return run;
}

bool kept(float rate, std::uint32_t epoch, std::int32_t sample, std::int64_t e) {
  const RandomKey key{
      .seed = kKey.seed, .purpose = RandomPurpose::dropout, .item = kKey.layer, .epoch = epoch};
  const PhiloxBlock block =
      random_block(key, static_cast<std::uint32_t>(sample), static_cast<std::uint32_t>(e / 4));
  return uniform_float(block[static_cast<std::size_t>(e % 4)]) >= rate;
}

std::vector<std::int32_t> sample_numbers(std::int64_t real, std::int64_t padded) {
  std::vector<std::int32_t> index(static_cast<std::size_t>(padded), -1);
  for (std::int64_t n = 0; n < real; ++n)
    index[static_cast<std::size_t>(n)] = static_cast<std::int32_t>(7919 * n + 3);
  return index;
}

}  // namespace

TEST_CASE("dropout's mask is the documented random words on every instruction set", "[kernels]") {
  for_each_set([](Context& context) {
    for (const std::int64_t features : {1, 3, 4, 10, 37}) {
      for (const std::int64_t real : {1, 17}) {
        for (const float rate : {0.0F, 0.3F, 0.5F, 0.9999F}) {
          const std::int64_t padded = round_up(real, 16);
          const std::vector<std::int32_t> index = sample_numbers(real, padded);
          const std::vector<float> x = random_values(padded * features, 1);
          const Run run = forward(context, rate, 2, index, features, x);
          for (std::int64_t n = 0; n < padded; ++n) {
            for (std::int64_t e = 0; e < features; ++e) {
              const std::size_t at = n16_index(features, n, e);
              const bool keep = n < real && kept(rate, 2, index[static_cast<std::size_t>(n)], e);
              INFO("rate " << rate << ", sample " << n << ", element " << e << " of " << features);
              REQUIRE(run.mask[at] == (keep ? 1 : 0));
              REQUIRE(run.y[at] == Approx(keep ? x[at] / (1 - rate) : 0).epsilon(1e-6));
            }
          }
        }
      }
    }
  });
}

TEST_CASE("dropout in place gives the same, and backward follows the mask", "[kernels]") {
  for_each_set([](Context& context) {
    const std::int64_t features = 21;
    const Shape shape{32, 3, 7};
    const std::vector<std::int32_t> index = sample_numbers(17, 32);
    const std::vector<float> x = random_values(shape.count(), 1);
    const Run apart = forward(context, 0.4F, 1, index, features, x);
    std::vector<float> y = x;
    std::vector<std::uint8_t> mask(x.size(), 77);
    StepState state;
    state.epoch = 1;
    dropout_forward(context, 0.4F, kKey, &state, index.data(), {y.data(), shape, Layout::n16},
                    {y.data(), shape, Layout::n16}, {mask.data(), shape, Layout::n16});
    REQUIRE(same_bits(y, apart.y));
    REQUIRE(same_bits(mask, apart.mask));

    // Dropped places hold NaN in dy: it must not pass.
    std::vector<float> dy = random_values(shape.count(), 2);
    for (std::size_t i = 0; i < dy.size(); ++i) dy[i] = mask[i] != 0 ? dy[i] : kNan;
    std::vector<float> dx = not_written(shape.count());
    dropout_backward(context, 0.4F, {mask.data(), shape, Layout::n16},
                     {dy.data(), shape, Layout::n16}, {dx.data(), shape, Layout::n16});
    for (std::size_t i = 0; i < dx.size(); ++i)
      REQUIRE(dx[i] == (mask[i] != 0 ? Approx(dy[i] / 0.6F) : Approx(0)));
    std::vector<float> in_place = dy;
    dropout_backward(context, 0.4F, {mask.data(), shape, Layout::n16},
                     {in_place.data(), shape, Layout::n16}, {in_place.data(), shape, Layout::n16});
    REQUIRE(same_bits(in_place, dx));
  });
}

TEST_CASE("a sample's mask does not depend on its place in the block", "[kernels]") {
  for_each_set([](Context& context) {
    const std::int64_t features = 50;
    std::vector<std::int32_t> index = sample_numbers(32, 32);
    const std::vector<float> ones(static_cast<std::size_t>(32 * features), 1.0F);
    const Run run = forward(context, 0.5F, 0, index, features, ones);
    std::vector<std::int32_t> turned(index.rbegin(), index.rend());
    const Run other = forward(context, 0.5F, 0, turned, features, ones);
    for (std::int64_t n = 0; n < 32; ++n) {
      for (std::int64_t e = 0; e < features; ++e) {
        REQUIRE(run.mask[n16_index(features, n, e)] == other.mask[n16_index(features, 31 - n, e)]);
      }
    }
    CHECK_FALSE(run.mask == forward(context, 0.5F, 1, index, features, ones).mask);
  });
}

TEST_CASE("dropout keeps the share it should", "[kernels]") {
  Context context(Device{});
  std::vector<std::int32_t> index(1024);
  for (std::size_t n = 0; n < index.size(); ++n) index[n] = static_cast<std::int32_t>(n);
  const std::int64_t features = 200;
  const std::vector<float> ones(index.size() * static_cast<std::size_t>(features), 1.0F);
  for (const float rate : {0.1F, 0.25F, 0.5F, 0.8F}) {
    const Run run = forward(context, rate, 0, index, features, ones);
    double sum = 0;
    for (const std::uint8_t keep : run.mask) sum += keep;
    const double count = static_cast<double>(run.mask.size());
    const double deviation = std::sqrt(rate * (1 - rate) / count);
    INFO("rate " << rate << " kept " << sum / count);
    CHECK(std::abs(sum / count - (1 - rate)) < 4 * deviation);
  }
}

TEST_CASE("dropout refuses rates and shapes that cannot work", "[kernels]") {
  Context context(Device{});
  std::vector<float> x(64);
  std::vector<std::uint8_t> mask(64);
  const std::vector<std::int32_t> index(16, 0);
  const StepState state;
  const auto call = [&](float rate, const Shape& in, const Shape& out, const Shape& saved,
                        Layout layout) {
    dropout_forward(context, rate, kKey, &state, index.data(), {x.data(), in, layout},
                    {x.data(), out, layout}, {mask.data(), saved, layout});
  };
  for (const float rate : {-0.1F, 1.0F, 2.0F, kNan}) {
    CHECK(contains(message_of<UsageError>([&] {
                     call(rate, {16, 4}, {16, 4}, {16, 4}, Layout::n16);
                   }),
                   "dropout_forward: the rate is"));
  }
  CHECK_THROWS_AS(call(0.5F, {16, 4}, {16, 3}, {16, 4}, Layout::n16), ShapeError);
  CHECK_THROWS_AS(call(0.5F, {16, 4}, {16, 4}, {16, 3}, Layout::n16), ShapeError);
  CHECK(contains(message_of<ShapeError>([&] {
                   call(0.5F, {16, 4}, {16, 4}, {16, 4}, Layout::canonical);
                 }),
                 "n16"));
  CHECK(contains(message_of<ShapeError>([&] {
                   call(0.5F, {15, 4}, {15, 4}, {15, 4}, Layout::n16);
                 }),
                 "multiple"));
  const FloatView dx(x.data(), {16, 4}, Layout::n16);
  CHECK_THROWS_AS(dropout_backward(context, 1.0F, {mask.data(), {16, 4}, Layout::n16}, dx, dx),
                  UsageError);
  CHECK_THROWS_AS(dropout_backward(context, 0.5F, {mask.data(), {16, 2}, Layout::n16}, dx, dx),
                  ShapeError);
}
