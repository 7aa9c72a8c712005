#include "lockstep/kernels/relu.h"

#include <cmath>

#include "kernels/relu_cases.h"
#include "support/cuda_device.h"
#include "support/throws.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

/// The tests' counts, none, and more than a block.
std::vector<std::int64_t> counts() {
  std::vector<std::int64_t> counts = kReluCounts;
  counts.push_back(0);
  counts.push_back(5001);
  return counts;
}

}  // namespace

TEST_CASE("relu on CUDA keeps what is above 0 and lets NaN through") {
  Gpu gpu;
  for (const std::int64_t count : counts()) {
    const std::vector<float> x = values_with_specials(count, 1);
    const DeviceArray<float> in(gpu.context, x), out(gpu.context, count), in_place(gpu.context, x);
    relu_forward(gpu.context, in.view({count}), out.view({count}));
    relu_forward(gpu.context, in_place.view({count}), in_place.view({count}));
    const std::vector<float> y = out.download();
    for (std::size_t i = 0; i < x.size(); ++i) {
      INFO("element " << i << " of " << count << ": " << x[i] << " gave " << y[i]);
      REQUIRE(alike(y[i], x[i] < 0 ? 0.0F : x[i]));
      REQUIRE((std::isnan(y[i]) || !std::signbit(y[i])));
    }
    REQUIRE(same_bits(in_place.download(), y));
  }
}

TEST_CASE("relu's gradient on CUDA goes where the output is above 0 or NaN") {
  Gpu gpu;
  for (const std::int64_t count : counts()) {
    std::vector<float> y = values_with_specials(count, 2);
    for (float& value : y) value = value < 0 ? 0.0F : value;
    std::vector<float> dy = random_values(count, 3);
    // What was NaN at a closed place must not leak.
    for (std::size_t i = 0; i < dy.size(); ++i) dy[i] = y[i] == 0 ? kNan : dy[i];
    const DeviceArray<float> outputs(gpu.context, y), gradient(gpu.context, dy),
        dx(gpu.context, count);
    relu_backward(gpu.context, outputs.view({count}), gradient.view({count}), dx.view({count}));
    relu_backward(gpu.context, outputs.view({count}), gradient.view({count}),
                  gradient.view({count}));
    const std::vector<float> result = dx.download();
    for (std::size_t i = 0; i < y.size(); ++i) {
      INFO("element " << i << " of " << count << ": y is " << y[i]);
      REQUIRE(result[i] == (y[i] > 0 || std::isnan(y[i]) ? dy[i] : 0.0F));
    }
    REQUIRE(same_bits(gradient.download(), result));
  }
}

TEST_CASE("relu on CUDA takes memory that is not aligned") {
  Gpu gpu;
  const std::vector<float> x = values_with_specials(41, 4);
  const DeviceArray<float> in(gpu.context, x), out(gpu.context, 41);
  relu_forward(gpu.context, {in.data() + 1, {38}}, {out.data() + 2, {38}});
  const std::vector<float> y = out.download();
  for (std::size_t i = 0; i < y.size(); ++i) {
    INFO("element " << i);
    if (i < 2 || i >= 40) {
      REQUIRE(std::isnan(y[i]));
    } else {
      REQUIRE(alike(y[i], x[i - 1] <= 0 ? 0.0F : x[i - 1]));
    }
  }
}
