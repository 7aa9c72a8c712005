// `lockstep_bench scaling --kind cuda` runs and reports. Its figures are looked at nowhere here: a
// simulated GPU's say nothing.
#include <string>

#include "apps/process.h"
#include "apps/training_run.h"
#include "parallel/cuda/gpus.h"
#include "support/catch.h"

namespace lockstep {

TEST_CASE("scaling: a short run on GPUs names them and every number of replicas") {
  const int most = test::possible({1, 2}).back();
  const auto run =
      test::run_process("lockstep_bench", {"scaling", "--kind", "cuda", "--replicas",
                                           most == 1 ? "1" : "1,2", "--rounds", "1", "--steps", "2",
                                           "--warm-up", "1", "--batch-size", "16", "--json", "-"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  const auto report = test::json_lines(run.out).at(0);
  CHECK(report["kind"] == "cuda");
  CHECK(report["processor"] == device_info({DeviceKind::cuda, 0}).name);
  CHECK(report["strong"].back()["replicas"] == most);
  CHECK(report["weak"].back()["batch_size"] == 16 * most);
}

}  // namespace lockstep
