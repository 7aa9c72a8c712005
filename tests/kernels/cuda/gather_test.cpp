#include "lockstep/kernels/gather.h"

#include "kernels/gather_cases.h"
#include "support/cuda_device.h"
#include "support/throws.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

/// A data set on the GPU.
struct DataOnGpu {
  const Data& host;
  DeviceArray<std::uint8_t> bytes;
  DeviceArray<float> floats, soft;
  DeviceArray<std::int32_t> classes;

  DataOnGpu(Context& context, const Data& data)
      : host(data),
        bytes(context, data.bytes),
        floats(context, data.floats),
        soft(context, data.soft),
        classes(context, data.classes) {}
  [[nodiscard]] DeviceSamples samples(bool with_bytes) const {
    DeviceSamples samples = with_bytes ? host.with_bytes() : host.with_floats();
    if (with_bytes) {
      samples.bytes = bytes.data();
      samples.classes = classes.data();
    } else {
      samples.floats = floats.data();
      samples.soft = soft.data();
    }
    return samples;
  }
};

struct BlockOnGpu {
  Shape shape;
  DeviceArray<float> x, soft;
  DeviceArray<std::int32_t> index, classes;

  BlockOnGpu(Context& context, std::int64_t places, std::int64_t features)
      : shape{places, features},
        x(context, places * features),
        soft(context, places * kSoftClasses),
        index(context, places),
        classes(context, places) {}
  [[nodiscard]] GatheredBlock view() const {
    return {x.view(shape), index.data(), classes.data(), soft.data()};
  }
  [[nodiscard]] Gathered download() const {
    return {x.download(), soft.download(), index.download(), classes.download()};
  }
};

StepState batch(std::uint32_t first, std::uint32_t count) {
  StepState state;
  state.first_sample = first;
  state.real_samples = count;
  return state;
}

}  // namespace

TEST_CASE("gather on CUDA brings the samples of the permutation and marks empty places") {
  Gpu gpu;
  const std::vector<std::int32_t> order = backwards(40);
  const DeviceArray<std::int32_t> permutation(gpu.context, order);
  // The largest makes several blocks of threads share a sample.
  for (const std::int64_t features : {1, 5, 16, 33, 64, 2501}) {
    const Data data(40, features);
    const DataOnGpu on_gpu(gpu.context, data);
    for (const std::int64_t real : {1, 16, 17}) {
      for (const bool bytes : {true, false}) {
        const EpochTables tables{
            .permutation = permutation.data(), .samples = 40, .batch_size = real};
        const DeviceValue<StepState> state(gpu.context, batch(11, static_cast<unsigned>(real)));
        const BlockOnGpu block(gpu.context, 19, features);
        gather(gpu.context, on_gpu.samples(bytes), tables, state.data(), 0, 1000, block.view());
        std::vector<std::int32_t> expected(19, -1);
        for (std::int32_t n = 0; n < real; ++n) expected[static_cast<std::size_t>(n)] = 28 - n;
        check_gathered(data, bytes, expected, block.download());
      }
    }
  }
}

TEST_CASE("gather on CUDA stops at the end of the shard and of the batch") {
  Gpu gpu;
  const Data data(64, 20);
  const DataOnGpu on_gpu(gpu.context, data);
  const EpochTables tables{.samples = 64, .batch_size = 40};
  const DeviceValue<StepState> state(gpu.context, batch(4, 40));
  struct Case {
    std::int64_t first, end, wanted;
  };
  for (const Case& c :
       {Case{0, 10, 10}, Case{16, 32, 16}, Case{32, 48, 8}, Case{48, 64, 0}, Case{20, 20, 0}}) {
    const BlockOnGpu block(gpu.context, 16, 20);
    gather(gpu.context, on_gpu.samples(true), tables, state.data(), c.first, c.end, block.view());
    std::vector<std::int32_t> expected(16, -1);
    for (std::int64_t n = 0; n < c.wanted; ++n)
      expected[static_cast<std::size_t>(n)] = static_cast<std::int32_t>(4 + c.first + n);
    check_gathered(data, true, expected, block.download());
  }
}

TEST_CASE("gather on CUDA finds a step's values in the ring and its targets by sample number") {
  Gpu gpu;
  // A ring of 2 steps for places 3 to 7 of batches of 8; step 5 is in its second half.
  constexpr std::int64_t kFeatures = 12, kPlaces = 5, kFirst = 3;
  const Data data(64, kFeatures);
  const DataOnGpu on_gpu(gpu.context, data);
  const std::vector<std::int32_t> order = backwards(64);
  const DeviceArray<std::int32_t> permutation(gpu.context, order);
  const EpochTables tables{.permutation = permutation.data(), .samples = 64, .batch_size = 8};
  StepState values = batch(40, 8);
  values.step_in_epoch = 5;
  const DeviceValue<StepState> state(gpu.context, values);
  std::vector<std::int32_t> expected;
  std::vector<std::uint8_t> ring(2 * kPlaces * kFeatures, 255);
  for (std::int64_t p = 0; p < kPlaces; ++p) {
    const std::int32_t sample = order[static_cast<std::size_t>(40 + kFirst + p)];
    expected.push_back(sample);
    std::copy_n(data.bytes.begin() + sample * kFeatures, kFeatures,
                ring.begin() + (kPlaces + p) * kFeatures);
  }
  const DeviceArray<std::uint8_t> ring_on_gpu(gpu.context, ring);
  DeviceSamples samples = on_gpu.samples(true);
  samples.bytes = ring_on_gpu.data();
  samples.ring_steps = 2;
  samples.ring_places = kPlaces;
  samples.ring_first = kFirst;
  const BlockOnGpu block(gpu.context, kPlaces, kFeatures);
  gather(gpu.context, samples, tables, state.data(), kFirst, 8, block.view());
  check_gathered(data, true, expected, block.download());

  const BlockOnGpu opened(gpu.context, kPlaces, kFeatures);
  open_and_gather(gpu.context, samples, tables, nullptr, state.data(), kFirst, 8, opened.view());
  check_gathered(data, true, expected, opened.download());

  samples.ring_places = 0;
  CHECK_THROWS_AS(gather(gpu.context, samples, tables, state.data(), kFirst, 8, block.view()),
                  UsageError);
}

TEST_CASE("open_step on CUDA sets the batch, the rate and the stop request") {
  Gpu gpu;
  const DeviceArray<float> rates(gpu.context, std::vector<float>{0.5F, 0.25F, 0.125F});
  const HostBuffer stop(kGpu, sizeof(std::uint32_t), "a test");
  const auto* request = reinterpret_cast<const std::uint32_t*>(stop.device_address());
  const EpochTables tables{
      .samples = 10, .learning_rates = rates.data(), .steps = 3, .batch_size = 4};
  StepState values;
  values.step = 70;
  values.step_in_epoch = 2;
  values.grad_norm = 3;
  values.clip_factor = 0.5F;
  values.frozen = 1;
  DeviceValue<StepState> state(gpu.context, values);
  *stop.as<std::uint32_t>() = 1;
  open_step(gpu.context, tables, request, state.data());
  StepState opened = state.download();
  CHECK(opened.first_sample == 8);
  CHECK(opened.real_samples == 2);
  CHECK(opened.inverse_samples == 0.5F);
  CHECK(opened.learning_rate == 0.125F);
  CHECK(opened.grad_norm == 0);
  CHECK(opened.clip_factor == 1);
  CHECK(opened.stop == 1);
  CHECK(opened.frozen == 1);
  CHECK(opened.step == 70);

  // Past the end of the epoch there are no samples, and nothing is read beyond the tables.
  values.step_in_epoch = 3;
  state.upload(values);
  *stop.as<std::uint32_t>() = 0;
  open_step(gpu.context, tables, request, state.data());
  opened = state.download();
  CHECK(opened.real_samples == 0);
  CHECK(opened.inverse_samples == 0);
  CHECK(opened.learning_rate == 0);
  CHECK(opened.stop == 0);

  values.stop = 1;
  state.upload(values);
  open_chunk(gpu.context, {.samples = 10, .batch_size = 4}, 1, state.data());
  opened = state.download();
  CHECK(opened.step_in_epoch == 1);
  CHECK(opened.first_sample == 4);
  CHECK(opened.real_samples == 4);
  CHECK(opened.stop == 0);
}

TEST_CASE("open_and_gather on CUDA is open_step and gather") {
  Gpu gpu;
  const Data data(70, 6);
  const DataOnGpu on_gpu(gpu.context, data);
  const HostBuffer stop(kGpu, sizeof(std::uint32_t), "a test");
  *stop.as<std::uint32_t>() = 3;
  const EpochTables tables{.samples = 70, .batch_size = 40};
  StepState values = batch(999, 999);
  values.step_in_epoch = 1;
  const DeviceValue<StepState> state(gpu.context, values);
  const BlockOnGpu block(gpu.context, 40, 6);
  open_and_gather(gpu.context, on_gpu.samples(false), tables,
                  reinterpret_cast<const std::uint32_t*>(stop.device_address()), state.data(), 0,
                  40, block.view());
  const StepState opened = state.download();
  CHECK(opened.first_sample == 40);
  CHECK(opened.real_samples == 30);
  CHECK(opened.stop == 3);
  std::vector<std::int32_t> expected(40, -1);
  for (std::int32_t n = 0; n < 30; ++n) expected[static_cast<std::size_t>(n)] = 40 + n;
  check_gathered(data, false, expected, block.download());
}
