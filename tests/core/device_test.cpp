#include "lockstep/core/device.h"

#include "lockstep/core/context.h"
#include "lockstep/core/error.h"

#include "support/catch.h"

using namespace lockstep;

TEST_CASE("device lists are parsed", "[core]") {
  const Devices four = parse_devices("cpu:4");
  CHECK(four.list.size() == 4);
  CHECK_FALSE(four.automatic);
  CHECK(four.list[3].to_string() == "cpu:3");
  CHECK(parse_devices("cpu").automatic);
  CHECK(parse_devices("cpu").list.size() == static_cast<std::size_t>(allowed_cores()));
  CHECK(parse_devices("auto").automatic);
}

TEST_CASE("device lists that mean nothing are refused with what is legal", "[core]") {
  for (const char* text : {"", "gpu", "cpu:", "cpu:0", "cpu:-1", "cpu:x", "cpu:2x",
                           "cpu:99999999999", "CPU", "cpus"}) {
    INFO(text);
    CHECK_THROWS_AS(parse_devices(text), UsageError);
  }
}

TEST_CASE("a context takes only instruction sets that the processor runs", "[core]") {
  const std::vector<CpuSet> sets = supported_cpu_sets();
  CHECK(sets.front() == CpuSet::baseline);
  for (const CpuSet set : sets) CHECK(Context(Device{}, set).cpu_set() == set);
}

TEST_CASE("the workspace grows and never shrinks", "[core]") {
  Context context{Device{}};
  context.reserve_workspace(100);
  context.reserve_workspace(10);
  CHECK(context.workspace_bytes() == 100);
}
