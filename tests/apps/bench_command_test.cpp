// `lockstep_bench scaling` runs and reports; its figures are whatever the machine gives.
#include "apps/golden.h"
#include "apps/process.h"
#include "apps/training_run.h"
#include "support/catch.h"
#include "support/throws.h"

namespace lockstep {

using test::contains;
using test::json_lines;
using test::run_process;
using test::ScratchFolder;

TEST_CASE("scaling: a short run, human and JSON", "[apps]") {
  const ScratchFolder folder;
  const std::vector<std::string> arguments{"scaling", "--replicas",   "1,2", "--rounds",
                                           "2",       "--steps",      "3",   "--warm-up",
                                           "1",       "--batch-size", "32",  "--json"};
  auto to_file = arguments;
  to_file.push_back(folder / "scaling.json");
  const auto human = run_process("lockstep_bench", to_file);
  REQUIRE(human.code == 0);
  CHECK(contains(human.out, "strong scaling"));
  CHECK(contains(human.out, "weak scaling"));
  CHECK(human.err.empty());
  auto to_stdout = arguments;
  to_stdout.push_back("-");
  const auto json = run_process("lockstep_bench", to_stdout);
  REQUIRE(json.code == 0);
  for (const auto& event :
       {json_lines(json.out).at(0), json_lines(test::read_text(folder / "scaling.json")).at(0)}) {
    CHECK(event["schema"] == 1);
    CHECK(event["strong"][1]["batch_size"] == 32);
    CHECK(event["weak"][1]["batch_size"] == 64);
    CHECK(event["weak"][1]["rounds"].size() == 2);
    CHECK(event["strong"][0]["samples_per_second"].get<double>() > 0);
  }
}

TEST_CASE("scaling: what cannot work is refused", "[apps]") {
  CHECK(run_process("lockstep_bench", {}).code == 2);
  CHECK(run_process("lockstep_bench", {"scaling", "--replicas", "0"}).code == 2);
  CHECK(run_process("lockstep_bench", {"scaling", "--kind", "cuda"}).code == 4);
  const ScratchFolder folder;
  CHECK(run_process("lockstep_bench", {"scaling", "--replicas", "1", "--rounds", "1", "--steps",
                                       "1", "--warm-up", "1", "--json", folder / "no/such/file"})
            .code == 7);
  // Before anything else: data that are missing would be another error.
  for (const char* command : {"scaling", "peers"}) {
    CHECK(run_process("lockstep_bench", {command, "--dataset", "mnist", "--data", folder / "none",
                                         "--json", folder / "no/such/file"})
              .code == 7);
  }
}

}  // namespace lockstep
