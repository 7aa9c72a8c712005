#include "lockstep/kernels/gather.h"

#include "kernels/gather_cases.h"
#include "kernels/samples.h"
#include "support/throws.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

struct Block {
  std::int64_t places, features;
  std::vector<float> x, soft;
  std::vector<std::int32_t> index, classes;

  Block(std::int64_t n, std::int64_t f)
      : places(n),
        features(f),
        x(not_written(n * f)),
        soft(not_written(n * kSoftClasses)),
        index(static_cast<std::size_t>(n), 12345),
        classes(static_cast<std::size_t>(n), 12345) {}
  [[nodiscard]] GatheredBlock view() {
    return {{x.data(), {places, features}, Layout::n16}, index.data(), classes.data(), soft.data()};
  }
};

/// The values of the block in the order of its samples.
void check_block(const Data& data, const Block& block, bool bytes,
                 const std::vector<std::int32_t>& expected) {
  check_gathered(
      data, bytes, expected,
      {from_n16(block.x, {block.places, block.features}), block.soft, block.index, block.classes});
}

}  // namespace

TEST_CASE("gather brings the samples of the permutation and marks empty places", "[kernels]") {
  for_each_set([](Context& context) {
    for (const std::int64_t features : {1, 5, 16, 33, 64}) {
      for (const std::int64_t real : {1, 16, 17}) {
        for (const bool bytes : {true, false}) {
          const Data data(40, features);
          const std::vector<std::int32_t> permutation = backwards(40);
          const EpochTables tables{
              .permutation = permutation.data(), .samples = 40, .batch_size = real};
          StepState state;
          state.first_sample = 11;
          state.real_samples = static_cast<std::uint32_t>(real);
          Block block(round_up(real, 16), features);
          gather(context, bytes ? data.with_bytes() : data.with_floats(), tables, &state, 0, 1000,
                 block.view());
          std::vector<std::int32_t> expected(static_cast<std::size_t>(block.places), -1);
          for (std::int64_t n = 0; n < real; ++n) {
            expected[static_cast<std::size_t>(n)] = static_cast<std::int32_t>(39 - (11 + n));
          }
          check_block(data, block, bytes, expected);
        }
      }
    }
  });
}

TEST_CASE(
    "gather stops at the end of the shard and of the batch, and without a permutation takes all in "
    "order",
    "[kernels]") {
  for_each_set([](Context& context) {
    const Data data(64, 20);
    const EpochTables tables{.samples = 64, .batch_size = 40};
    StepState state;
    state.first_sample = 4;
    state.real_samples = 40;
    struct Case {
      std::int64_t first, end, wanted;
    };
    for (const Case& c :
         {Case{0, 10, 10}, Case{16, 32, 16}, Case{32, 48, 8}, Case{48, 64, 0}, Case{20, 20, 0}}) {
      Block block(16, 20);
      gather(context, data.with_bytes(), tables, &state, c.first, c.end, block.view());
      std::vector<std::int32_t> expected(16, -1);
      for (std::int64_t n = 0; n < c.wanted; ++n) {
        expected[static_cast<std::size_t>(n)] = static_cast<std::int32_t>(4 + c.first + n);
      }
      check_block(data, block, true, expected);
    }
  });
}

TEST_CASE("gathering touches no byte outside the samples", "[kernels]") {
  // Exactly one sample in memory of exactly its size: the address sanitizer sees what is read
  // beyond it.
  for_each_set([](Context& context) {
    for (const std::int64_t features : {15, 16, 17, 31}) {
      const Data data(1, features);
      const EpochTables tables{.samples = 1, .batch_size = 1};
      StepState state;
      state.real_samples = 1;
      Block block(16, features);
      gather(context, data.with_bytes(), tables, &state, 0, 16, block.view());
      std::vector<std::int32_t> expected(16, -1);
      expected[0] = 0;
      check_block(data, block, true, expected);
    }
  });
}

TEST_CASE("open_step sets the batch, the rate and the stop request", "[kernels]") {
  Context context(Device{});
  const std::vector<float> rates = {0.5F, 0.25F, 0.125F};
  EpochTables tables{.samples = 10, .learning_rates = rates.data(), .steps = 3, .batch_size = 4};
  std::uint32_t stop = 1;
  StepState state;
  state.step = 70;
  state.step_in_epoch = 2;
  state.grad_norm = 3;
  state.clip_factor = 0.5F;
  state.frozen = 1;
  open_step(context, tables, &stop, &state);
  CHECK(state.first_sample == 8);
  CHECK(state.real_samples == 2);
  CHECK(state.inverse_samples == 0.5F);
  CHECK(state.learning_rate == 0.125F);
  CHECK(state.grad_norm == 0);
  CHECK(state.clip_factor == 1);
  CHECK(state.stop == 1);
  CHECK(state.frozen == 1);
  CHECK(state.step == 70);

  state.step_in_epoch = 0;
  tables.learning_rates = nullptr;
  open_step(context, tables, nullptr, &state);
  CHECK(state.first_sample == 0);
  CHECK(state.real_samples == 4);
  CHECK(state.learning_rate == 0);
  CHECK(state.stop == 0);

  // Past the end of the epoch there are no samples, and nothing is read beyond the tables.
  tables.learning_rates = rates.data();
  state.step_in_epoch = 3;
  open_step(context, tables, nullptr, &state);
  CHECK(state.real_samples == 0);
  CHECK(state.inverse_samples == 0);
  CHECK(state.learning_rate == 0);
  tables.batch_size = 0;
  CHECK_THROWS_AS(open_step(context, tables, nullptr, &state), UsageError);
}

TEST_CASE("open_chunk is open_step for the chunk that the caller counts", "[kernels]") {
  Context context(Device{});
  const EpochTables tables{.samples = 10, .batch_size = 4};
  StepState state;
  state.stop = 1;
  open_chunk(context, tables, 2, &state);
  CHECK(state.step_in_epoch == 2);
  CHECK(state.first_sample == 8);
  CHECK(state.real_samples == 2);
  CHECK(state.inverse_samples == 0.5F);
  CHECK(state.stop == 0);
  CHECK(contains(message_of<UsageError>([&] { open_chunk(context, tables, -1, &state); }),
                 "open_chunk: the chunk is -1"));
}

TEST_CASE("open_and_gather is open_step and gather", "[kernels]") {
  for_each_set([](Context& context) {
    const Data data(20, 6);
    const EpochTables tables{.samples = 20, .batch_size = 8};
    const std::uint32_t stop = 3;
    StepState state;
    state.step_in_epoch = 2;
    Block block(16, 6);
    open_and_gather(context, data.with_bytes(), tables, &stop, &state, 0, 16, block.view());
    CHECK(state.first_sample == 16);
    CHECK(state.real_samples == 4);
    CHECK(state.stop == 3);
    std::vector<std::int32_t> expected(16, -1);
    for (int n = 0; n < 4; ++n) expected[static_cast<std::size_t>(n)] = 16 + n;
    check_block(data, block, true, expected);
  });
}

TEST_CASE("gather refuses blocks and data sets that do not fit", "[kernels]") {
  Context context(Device{});
  const Data data(20, 6);
  const EpochTables tables{.samples = 20, .batch_size = 4};
  const StepState state;
  Block block(16, 6);
  const auto call = [&](const DeviceSamples& samples, const GatheredBlock& out,
                        std::int64_t first = 0) {
    gather(context, samples, tables, &state, first, 16, out);
  };
  GatheredBlock out = block.view();
  out.x.shape = {16, 5};
  CHECK(contains(message_of<ShapeError>([&] { call(data.with_bytes(), out); }),
                 "gather: x is (16, 5)"));
  out.x.shape = {15, 6};
  CHECK_THROWS_AS(call(data.with_bytes(), out), ShapeError);
  out = block.view();
  out.x.layout = Layout::canonical;
  CHECK_THROWS_AS(call(data.with_bytes(), out), ShapeError);
  CHECK_THROWS_AS(call(data.with_bytes(), block.view(), -1), ShapeError);
  out = block.view();
  out.classes = nullptr;
  CHECK_THROWS_AS(call(data.with_bytes(), out), UsageError);
  DeviceSamples samples = data.with_bytes();
  samples.floats = data.floats.data();
  CHECK_THROWS_AS(call(samples, block.view()), UsageError);
  samples = data.with_bytes();
  samples.bytes = nullptr;
  CHECK_THROWS_AS(call(samples, block.view()), UsageError);
  samples = data.with_bytes();
  samples.soft = data.soft.data();
  CHECK_THROWS_AS(call(samples, block.view()), UsageError);
  samples = data.with_bytes();
  samples.ring_steps = 2;
  samples.ring_places = 16;
  CHECK(contains(message_of<UsageError>([&] { call(samples, block.view()); }), "ring"));
}
