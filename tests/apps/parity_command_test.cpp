// `mnist_multi_gpu parity`: the weights are the same for every number of replicas.
#include "apps/process.h"
#include "apps/training_run.h"
#include "support/catch.h"
#include "support/throws.h"

namespace lockstep {

using test::contains;
using test::json_lines;
using test::run_process;

TEST_CASE("parity: 1, 2, 4 and 8 replicas give one weights file", "[apps]") {
  const auto run = run_process("mnist_multi_gpu", {"parity", "--kind", "cpu", "--replicas",
                                                   "1,2,4,8", "--dataset", "synthetic", "--json"});
  CHECK(run.code == 0);
  const auto event = json_lines(run.out).back();
  CHECK(event["event"] == "parity");
  CHECK(event["kind"] == "cpu");
  CHECK(event["replicas"] == nlohmann::json({1, 2, 4, 8}));
  CHECK(event["bit_equal"] == true);
  REQUIRE(event["sha256"].size() == 4);
  CHECK(event["sha256"][0].get<std::string>().size() == 64);
  CHECK(event["sha256"][3] == event["sha256"][0]);
  CHECK(event["steps"].get<int>() >= 50);
  CHECK(event["train_samples"].get<int>() % 128 != 0);
}

TEST_CASE("parity: human output ends with the event; another model, batch and seed", "[apps]") {
  const auto run =
      run_process("mnist_multi_gpu", {"parity", "--replicas", "1,4", "--dataset", "synthetic",
                                      "--model", "mlp", "--batch-size", "30", "--seed", "9"});
  CHECK(run.code == 0);
  CHECK(contains(run.out, "bit-equal: yes\n{\"event\":\"parity\""));
  CHECK(run.err.empty());
}

TEST_CASE("parity: numbers of replicas that do not divide the shards are refused", "[apps]") {
  const auto run =
      run_process("mnist_multi_gpu", {"parity", "--replicas", "1,3", "--dataset", "synthetic"});
  CHECK(run.code == 2);
  CHECK(run.out.empty());
}

}  // namespace lockstep
