// `mnist_multi_gpu parity --kind cuda`: the weights are the same for every number of GPUs.
#include <string>

#include "apps/process.h"
#include "apps/training_run.h"
#include "parallel/cuda/gpus.h"
#include "support/catch.h"

namespace lockstep {

TEST_CASE("parity: 1, 2, 4 and 8 GPUs give one weights file") {
  std::string replicas;
  for (const int count : test::possible({1, 2, 4, 8})) {
    if (!replicas.empty()) replicas += ',';
    replicas += std::to_string(count);
  }
  const auto run = test::run_process(
      "mnist_multi_gpu", {"parity", "--kind", "cuda", "--replicas", replicas, "--dataset",
                          "synthetic", "--batch-size", "16", "--steps", "50", "--json"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  const auto event = test::json_lines(run.out).back();
  CHECK(event["event"] == "parity");
  CHECK(event["kind"] == "cuda");
  CHECK(event["bit_equal"] == true);
  CHECK(event["steps"] == 50);
  CHECK(event["train_samples"].get<int>() % 16 != 0);
  const auto& digests = event["sha256"];
  CHECK(digests.size() == test::possible({1, 2, 4, 8}).size());
  for (const auto& digest : digests) CHECK(digest == digests[0]);
}

}  // namespace lockstep
