// How batches are cut and dealt, and what is refused with which advice.
#include "lockstep/parallel/sharding.h"

#include "lockstep/core/error.h"

#include "support/catch.h"
#include "support/throws.h"

namespace lockstep {
namespace {

Devices devices(int count, bool automatic, DeviceKind kind = DeviceKind::cpu) {
  Devices result;
  result.automatic = automatic;
  for (int i = 0; i < count; ++i) result.list.push_back({kind, i});
  return result;
}

Devices exactly(int count) {
  return devices(count, false);
}
Devices up_to(int count) {
  return devices(count, true);
}

std::string refusal(const Devices& list, Reduce reduce, int shards, std::int64_t batch,
                    std::int64_t per_replica = 0) {
  return test::message_of<UsageError>(
      [&] { static_cast<void>(make_sharding(list, reduce, shards, batch, per_replica)); });
}

TEST_CASE("fast mode has one shard for every replica") {
  CHECK(make_sharding(exactly(4), Reduce::fast, 0, 128, 0) == Sharding{4, 4, 128, 32});
  CHECK(make_sharding(exactly(3), Reduce::fast, 0, 128, 0) == Sharding{3, 3, 128, 43});
  CHECK(make_sharding(exactly(1), Reduce::fast, 0, 1, 0) == Sharding{1, 1, 1, 1});
  CHECK(make_sharding(exactly(8), Reduce::fast, 0, 5, 0) == Sharding{8, 8, 5, 1});
}

TEST_CASE("fast mode takes any multiple of the replicas as shards") {
  const Sharding sharding = make_sharding(exactly(4), Reduce::fast, 12, 128, 0);
  CHECK(sharding == Sharding{4, 12, 128, 11});
  CHECK(sharding.per_replica() == 3);
  const std::string error = refusal(exactly(4), Reduce::fast, 6, 128);
  CHECK(test::contains(error, "6 shards are not a multiple of 4 replicas"));
  CHECK(test::contains(error, "4, 8, 12, ..."));
  CHECK(test::contains(error, "1, 2, 3"));
}

TEST_CASE("invariant mode has eight shards or another power of two, whatever the replicas") {
  for (const int replicas : {1, 2, 4, 8}) {
    CHECK(make_sharding(exactly(replicas), Reduce::invariant, 0, 100, 0) ==
          Sharding{replicas, 8, 100, 13});
  }
  CHECK(make_sharding(exactly(16), Reduce::invariant, 16, 128, 0) == Sharding{16, 16, 128, 8});
  CHECK(make_sharding(exactly(1), Reduce::invariant, 1, 128, 0) == Sharding{1, 1, 128, 128});
  CHECK(test::contains(refusal(exactly(2), Reduce::invariant, 6, 128), "1, 2, 4, 8, 16"));
  CHECK(test::contains(refusal(exactly(3), Reduce::invariant, 0, 128), "out of 1, 2, 4, 8"));
  CHECK(test::contains(refusal(exactly(16), Reduce::invariant, 0, 128), "16 replicas"));
}

TEST_CASE("a free choice takes the largest legal number that leaves each CPU 16 samples") {
  CHECK(make_sharding(up_to(64), Reduce::fast, 0, 128, 0).replicas == 8);
  CHECK(make_sharding(up_to(6), Reduce::fast, 0, 128, 0).replicas == 6);
  // The last one counts: 7 replicas of 19 would leave it 13 of 127, 3 of 17 leave it 15 of 49.
  CHECK(make_sharding(up_to(64), Reduce::fast, 0, 127, 0).replicas == 6);
  CHECK(make_sharding(up_to(64), Reduce::fast, 0, 31, 0).replicas == 1);
  CHECK(make_sharding(up_to(64), Reduce::fast, 0, 1, 0).replicas == 1);
  CHECK(make_sharding(up_to(64), Reduce::fast, 0, 49, 0).replicas == 2);
  CHECK(make_sharding(up_to(64), Reduce::fast, 6, 4096, 0).replicas == 6);
  CHECK(make_sharding(up_to(5), Reduce::fast, 6, 4096, 0).replicas == 3);
  CHECK(make_sharding(up_to(7), Reduce::invariant, 0, 128, 0).replicas == 4);
  CHECK(make_sharding(up_to(64), Reduce::invariant, 0, 128, 0).replicas == 8);
  CHECK(make_sharding(up_to(64), Reduce::invariant, 0, 64, 0).replicas == 4);
  CHECK(make_sharding(up_to(64), Reduce::invariant, 32, 4096, 0).replicas == 32);
  CHECK(make_sharding(up_to(3), Reduce::invariant, 1, 4096, 0).replicas == 1);
  // GPUs have no least number of samples.
  CHECK(make_sharding(devices(4, true, DeviceKind::cuda), Reduce::fast, 0, 8, 0).replicas == 4);
}

TEST_CASE("a batch per replica grows with the replicas") {
  CHECK(make_sharding(exactly(4), Reduce::fast, 0, 128, 128) == Sharding{4, 4, 512, 128});
  CHECK(make_sharding(up_to(4), Reduce::fast, 0, 999, 8) == Sharding{4, 4, 32, 8});
  CHECK(make_sharding(up_to(3), Reduce::invariant, 0, 0, 50) == Sharding{2, 8, 100, 13});
}

TEST_CASE("sharding refuses what cannot be") {
  constexpr std::int64_t kMost = 1 << 24;
  CHECK(test::contains(refusal(exactly(0), Reduce::fast, 0, 128), "no devices"));
  for (const std::int64_t batch : {std::int64_t{0}, std::int64_t{-5}, kMost + 1}) {
    CHECK(test::contains(refusal(exactly(1), Reduce::fast, 0, batch), "1 to 16777216"));
  }
  CHECK(make_sharding(exactly(1), Reduce::fast, 0, kMost, 0).shard_samples == kMost);
  CHECK(test::contains(refusal(exactly(1), Reduce::fast, 0, 128, -1), "batch per replica of -1"));
  CHECK(test::contains(refusal(exactly(2), Reduce::fast, 0, 128, kMost), "batch size of 33554432"));
  CHECK(test::contains(refusal(exactly(2), Reduce::fast, 0, 128, std::int64_t{1} << 62),
                       "batch per replica"));
  CHECK(test::contains(refusal(exactly(1), Reduce::fast, -1, 128), "1 to 65536"));
  CHECK(test::contains(refusal(exactly(1), Reduce::invariant, 1 << 20, 128), "1 to 65536"));
}

TEST_CASE("steps of an epoch") {
  CHECK(steps_per_epoch(55000, 128, LastBatch::keep) == 430);
  CHECK(steps_per_epoch(55000, 128, LastBatch::drop) == 429);
  CHECK(steps_per_epoch(256, 128, LastBatch::keep) == 2);
  CHECK(steps_per_epoch(256, 128, LastBatch::drop) == 2);
  CHECK(steps_per_epoch(5, 128, LastBatch::keep) == 1);
  CHECK(steps_per_epoch(5, 128, LastBatch::drop) == 0);
  CHECK(steps_per_epoch(0, 128, LastBatch::keep) == 0);
  CHECK_THROWS_AS(steps_per_epoch(5, 0, LastBatch::keep), UsageError);
}

TEST_CASE("a training that goes on keeps its shards where the devices can share them") {
  const auto resumed = [](const char* devices, bool automatic, Reduce reduce, int shards) {
    return resume_sharding({.list = parse_devices(devices).list, .automatic = automatic}, reduce,
                           shards, 128);
  };
  CHECK(resumed("cpu:8", false, Reduce::fast, 8) == Sharding{8, 8, 128, 16});
  CHECK(resumed("cpu:4", false, Reduce::fast, 8) == Sharding{4, 8, 128, 16});
  CHECK(resumed("cpu:3", false, Reduce::fast, 8) == Sharding{3, 3, 128, 43});
  CHECK(resumed("cpu:3", true, Reduce::fast, 8) == Sharding{2, 8, 128, 16});
  CHECK(resumed("cpu:4", true, Reduce::fast, 1) == Sharding{1, 1, 128, 128});
  CHECK(resumed("cpu:2", false, Reduce::invariant, 8) == Sharding{2, 8, 128, 16});
  CHECK_THROWS_AS(resumed("cpu:3", false, Reduce::invariant, 8), UsageError);
}

}  // namespace
}  // namespace lockstep
