#include "lockstep/kernels/dropout.h"

#include "kernels/samples.h"
#include "support/cuda_device.h"
#include "support/throws.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

constexpr DropoutKey kKey{.seed = 0x123456789ABCDEF0, .layer = 5};

bool kept(float rate, std::uint32_t epoch, std::int32_t sample, std::int64_t e) {
  const RandomKey key{
      .seed = kKey.seed, .purpose = RandomPurpose::dropout, .item = kKey.layer, .epoch = epoch};
  const PhiloxBlock block =
      random_block(key, static_cast<std::uint32_t>(sample), static_cast<std::uint32_t>(e / 4));
  return uniform_float(block[static_cast<std::size_t>(e % 4)]) >= rate;
}

/// Two samples, an empty place, a sample.
const std::vector<std::int32_t> kIndex = {3, 7922, -1, 2147483647};

}  // namespace

TEST_CASE("dropout's mask on CUDA is the documented random words, forward and backward") {
  Gpu gpu;
  const DeviceArray<std::int32_t> index(gpu.context, kIndex);
  StepState values;
  values.epoch = 2;
  const DeviceValue<StepState> state(gpu.context, values);
  for (const std::int64_t features : {1, 3, 4, 10, 37, 64}) {
    for (const float rate : {0.0F, 0.3F, 0.5F, 0.9999F}) {
      const Shape shape{4, features};
      const std::vector<float> x = random_values(shape.count(), 1);
      const DeviceArray<float> in(gpu.context, x), out(gpu.context, shape.count()),
          in_place(gpu.context, x);
      const DeviceArray<std::uint8_t> mask(gpu.context, shape.count()),
          mask_in_place(gpu.context, shape.count());
      dropout_forward(gpu.context, rate, kKey, state.data(), index.data(), in.view(shape),
                      out.view(shape), mask.view(shape));
      dropout_forward(gpu.context, rate, kKey, state.data(), index.data(), in_place.view(shape),
                      in_place.view(shape), mask_in_place.view(shape));
      const std::vector<float> y = out.download();
      const std::vector<std::uint8_t> kept_places = mask.download();
      REQUIRE(same_bits(in_place.download(), y));
      REQUIRE(mask_in_place.download() == kept_places);

      // Dropped places hold NaN in dy: it must not pass.
      std::vector<float> gradient = random_values(shape.count(), 2);
      for (std::size_t n = 0; n < kIndex.size(); ++n) {
        for (std::int64_t e = 0; e < features; ++e) {
          const std::size_t at =
              n * static_cast<std::size_t>(features) + static_cast<std::size_t>(e);
          const bool keep = kIndex[n] >= 0 && kept(rate, 2, kIndex[n], e);
          INFO("rate " << rate << ", sample " << n << ", element " << e << " of " << features);
          REQUIRE(kept_places[at] == (keep ? 1 : 0));
          REQUIRE(y[at] == (keep ? x[at] * (1.0F / (1.0F - rate)) : 0.0F));
          if (!keep) gradient[at] = kNan;
        }
      }
      const DeviceArray<float> dy(gpu.context, gradient), dx(gpu.context, shape.count());
      dropout_backward(gpu.context, rate, mask.view(shape), dy.view(shape), dx.view(shape));
      const std::vector<float> result = dx.download();
      for (std::size_t i = 0; i < result.size(); ++i) {
        REQUIRE(result[i] == (kept_places[i] != 0 ? gradient[i] * (1.0F / (1.0F - rate)) : 0.0F));
      }
    }
  }
}

TEST_CASE("dropout on CUDA refuses rates and shapes that cannot work") {
  Gpu gpu;
  const DeviceArray<float> x(gpu.context, 64);
  const DeviceArray<std::uint8_t> mask(gpu.context, 64);
  CHECK_THROWS_AS(
      dropout_backward(gpu.context, 1.0F, mask.view({16, 4}), x.view({16, 4}), x.view({16, 4})),
      UsageError);
  CHECK(contains(message_of<ShapeError>([&] {
                   dropout_backward(gpu.context, 0.5F, {mask.data(), {16, 4}, Layout::n16},
                                    {x.data(), {16, 4}, Layout::n16},
                                    {x.data(), {16, 4}, Layout::n16});
                 }),
                 "canonical"));
}
