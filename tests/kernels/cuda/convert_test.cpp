#include "lockstep/kernels/convert.h"

#include "kernels/samples.h"
#include "support/cuda_device.h"
#include "support/throws.h"

using namespace lockstep;
using namespace lockstep::test;

TEST_CASE("convert_layout on CUDA copies, cuts and fills with zeros") {
  Gpu gpu;
  for (const std::int64_t features : {1, 2, 21, 24}) {
    for (const std::int64_t in : {0, 1, 16, 17}) {
      for (const std::int64_t out : {0, 1, 5, 16, 48}) {
        const std::vector<float> x = random_values(in * features, 1);
        const DeviceArray<float> from(gpu.context, x), to(gpu.context, out * features);
        convert_layout(gpu.context, from.view({in, features}), to.view({out, features}));
        std::vector<float> expected = x;
        expected.resize(static_cast<std::size_t>(out * features), 0.0F);
        INFO(in << " samples to " << out << " of " << features);
        REQUIRE(same_bits(to.download(), expected));
      }
    }
  }
}

TEST_CASE("convert_layout on CUDA knows only the canonical layout") {
  Gpu gpu;
  const DeviceArray<float> x(gpu.context, 32), y(gpu.context, 32);
  CHECK(contains(message_of<ShapeError>([&] {
                   convert_layout(gpu.context, {x.data(), {16, 2}, Layout::n16}, y.view({16, 2}));
                 }),
                 "convert_layout: x has layout n16; on cuda:0 it must be canonical"));
  CHECK_THROWS_AS(convert_layout(gpu.context, x.view({16, 2}), {y.data(), {16, 2}, Layout::n16}),
                  ShapeError);
}
