// Plans allocate when they are made and never again.
#include "lockstep/layers/zoo.h"

#include "layers/rig.h"
#include "support/allocations.h"
#include "support/catch.h"

using namespace lockstep;
using lockstep::test::AllocationCount;

TEST_CASE("allocations are counted", "[layers]") {
  const AllocationCount allocated;
  const std::vector<int> numbers(100);
  CHECK(numbers.size() == 100);
  const Buffer buffer(Device{}, 1000, "a test");
  CHECK(allocated.count() >= 2);
}

TEST_CASE("a plan allocates nothing in its loop, not even the first time", "[layers]") {
  for (const char* name : {"article", "lenet5", "wide_cnn"}) {
    INFO(name);
    const test::Batch batch = test::make_batch({1, 28, 28}, 20, 10);
    test::Rig rig(zoo::by_name(name), batch.sample, {.block = 16, .training = true});
    const AllocationCount allocated;
    rig.run(batch);
    const std::int64_t count = allocated.count();
    CHECK(count == 0);
  }
}
