// lockstep_bench ops: options, figures and reports from fixed times, and a short run.
#include <cmath>
#include <cstdlib>
#include <set>
#include <sstream>

#include "lockstep/core/error.h"

#include "apps/golden.h"
#include "apps/lockstep_bench/operations.h"
#include "apps/lockstep_bench/ops.h"
#include "apps/process.h"
#include "apps/training_run.h"
#include "support/catch.h"
#include "support/throws.h"

namespace lockstep::apps {

using test::contains;
using test::json_lines;
using test::message_of;
using test::run_process;

namespace {

/// 100 GFLOP/s; 200 GB/s up to 1000 bytes, 50 GB/s beyond.
OpsReport report() {
  OpsReport report{.set = "avx2",
                   .rounds = 3,
                   .others = 0.25,
                   .machine = {.peak = 1e11, .levels = {{1024, 2e11}, {4 << 20, 5e10}}},
                   .rows = {{.operation = "conv2d_forward",
                             .shape = "8->16",
                             .block = 16,
                             .flops = 8e6,
                             .bytes = 1e5,
                             .working_set = 1e5,
                             .seconds = {2e-4, 1e-4, 4e-4}},
                            {.operation = "relu",
                             .shape = "100",
                             .block = 64,
                             .flops = 100,
                             .bytes = 800,
                             .working_set = 800,
                             .seconds = {4e-9, 5e-9, 8e-9}},
                            {.operation = "adam",
                             .shape = "all",
                             .block = 1000000,
                             .flops = 0,
                             .bytes = 1e8,
                             .working_set = 1e8,
                             .seconds = {1e-3, 1e-3, 1e-3}}}};
  derive(report);
  return report;
}

}  // namespace

TEST_CASE("ops: figures that follow from times and machine", "[apps]") {
  const OpsReport figures = report();
  const OpsRow& conv = figures.rows[0];
  CHECK(conv.time.median == 2e-4);
  CHECK(conv.time.lowest == 1e-4);
  CHECK(conv.time.highest == 4e-4);
  CHECK(conv.flop_rate == Approx(4e10));
  CHECK(conv.byte_rate == Approx(5e8));
  CHECK(conv.bound == Approx(8e-5));  // arithmetic: 8e6 / 1e11
  CHECK(conv.share_of_bound == Approx(0.4));
  CHECK(conv.share_of_peak == Approx(0.4));
  const OpsRow& relu = figures.rows[1];
  CHECK(relu.bound == Approx(4e-9));  // memory, in the first level: 800 / 2e11
  CHECK(relu.share_of_bound == Approx(0.8));
  CHECK(relu.share_of_peak == Approx(0.2));
  const OpsRow& adam = figures.rows[2];
  CHECK(adam.bound == Approx(2e-3));  // larger than every level: the last one's rate
  CHECK(adam.share_of_bound == Approx(2));
}

TEST_CASE("ops: the table", "[apps]") {
  std::ostringstream out;
  write_ops(out, report());
  test::check_golden("ops_report.txt", out.str());
}

TEST_CASE("ops: the JSON has every figure", "[apps]") {
  const Json event = ops_event(report());
  CHECK(event["schema"] == 1);
  CHECK(event["event"] == "ops");
  CHECK(event["processor"] == "avx2");
  CHECK(event["other_processes_cores"] == 0.25);
  CHECK(event["peak_flops_per_second"] == 1e11);
  CHECK(event["bandwidth"][1]["working_set"] == 4 << 20);
  CHECK(event["bandwidth"][1]["bytes_per_second"] == 5e10);
  REQUIRE(event["rows"].size() == 3);
  const Json& row = event["rows"][0];
  CHECK(row["operation"] == "conv2d_forward");
  CHECK(row["block"] == 16);
  CHECK(row["seconds"]["lowest"] == 1e-4);
  CHECK(row["rounds"].size() == 3);
  CHECK(row["share_of_bound"] == report().rows[0].share_of_bound);
}

TEST_CASE("ops: options", "[apps]") {
  const auto plain = std::get<OpsOptions>(parse_bench({"ops"}));
  CHECK(plain.filter.empty());
  CHECK(plain.rounds == 5);
  CHECK_FALSE(plain.quiet);
  const auto all = std::get<OpsOptions>(
      parse_bench({"ops", "--filter", "relu", "--rounds", "2", "--json", "-", "--quiet"}));
  CHECK(all.filter == "relu");
  CHECK(all.rounds == 2);
  CHECK(all.json == "-");
  CHECK(all.quiet);
  const std::string text = message_of<UsageError>([] {
    (void)parse_bench({"ops", "--rounds", "0"});
  });
  CHECK(contains(text, "--rounds: '0'; want a whole number"));
  test::check_golden("ops_help.txt", std::get<PrintText>(parse_bench({"ops", "--help"})).text);
}

TEST_CASE("ops: the list has each operation, nominal work and all memory", "[apps]") {
  Context context(Device{});
  const std::vector<Operation> list = make_operations(context, "");
  std::set<std::string> names;
  for (const Operation& operation : list) {
    names.insert(operation.name);
    CAPTURE(operation.name, operation.shape, operation.block);
    double memory = 0;
    for (const Buffer& buffer : operation.memory) memory += static_cast<double>(buffer.bytes());
    CHECK(operation.working_set == memory);
    CHECK(operation.bytes >= memory);
    CHECK(operation.flops > 0);
  }
  for (const char* name :
       {"conv2d_forward", "conv2d_backward_data", "conv2d_backward_parameters", "maxpool2d_forward",
        "maxpool2d_backward", "relu_forward", "relu_backward", "linear_forward",
        "linear_backward_data", "linear_backward_parameters", "softmax_cross_entropy", "gather",
        "dropout_forward", "dropout_backward", "adam_update", "measure_gradient"}) {
    CAPTURE(name);
    CHECK(names.contains(name));
  }
  // The article's second convolution: 2 * 8 * 16 * 9 * 14 * 14 a sample; x, w, b and y once.
  const auto conv = make_operations(context, "conv2d_forward 8->16 14x14 k3");
  REQUIRE(conv.size() == 1);
  CHECK(conv[0].flops == 16 * 451584.0);
  CHECK(conv[0].bytes == 4 * (16 * (1568 + 3136) + 1152 + 16));
}

TEST_CASE("ops: every operation runs", "[apps]") {
  Context context(Device{});
  for (const Operation& operation : make_operations(context, "")) {
    CAPTURE(operation.name, operation.shape);
    CHECK_NOTHROW(operation.run());
  }
}

TEST_CASE("ops: a filter that nothing passes names what there is", "[apps]") {
  Context context(Device{});
  const std::string text =
      message_of<UsageError>([&] { (void)make_operations(context, "nothing like it"); });
  CHECK(contains(text, "nothing like it"));
  CHECK(contains(text, "conv2d_backward_data"));
}

TEST_CASE("ops: a short run, JSON and table", "[apps]") {
  const auto run =
      run_process("lockstep_bench", {"ops", "--filter", "relu", "--rounds", "1", "--json", "-"});
  REQUIRE(run.code == 0);
  CHECK(run.err.empty());
  const auto event = json_lines(run.out).at(0);
  CHECK(event["event"] == "ops");
  CHECK(event["peak_flops_per_second"].get<double>() > 0);
  REQUIRE(event["rows"].size() >= 2);
  for (const auto& row : event["rows"]) {
    CAPTURE(row.dump());
    CHECK(contains(row["operation"].get<std::string>() + ' ' + row["shape"].get<std::string>(),
                   "relu"));
    for (const char* key : {"flops", "bytes", "working_set", "flops_per_second", "bytes_per_second",
                            "bound_seconds", "share_of_bound", "share_of_peak"}) {
      CAPTURE(key);
      CHECK(std::isfinite(row[key].get<double>()));
      CHECK(row[key].get<double>() > 0);
    }
    CHECK(row["seconds"]["median"].get<double>() > 0);
    CHECK(row["rounds"].size() == 1);
  }
  const auto table =
      run_process("lockstep_bench", {"ops", "--filter", "measure_gradient", "--rounds", "1"});
  CHECK(table.code == 0);
  CHECK(contains(table.out, "measure_gradient  8000 parameters"));
  CHECK(run_process("lockstep_bench", {"ops", "--filter", "nothing like it"}).code == 2);
}

TEST_CASE("ops: the environment chooses the instruction set", "[apps]") {
  const char* const before = std::getenv("LOCKSTEP_CPU_ISA");
  const std::string kept = before == nullptr ? "" : before;
  setenv("LOCKSTEP_CPU_ISA", "baseline", 1);
  const auto run = run_process(
      "lockstep_bench", {"ops", "--filter", "relu_forward 1176", "--rounds", "1", "--json", "-"});
  if (before == nullptr) {
    unsetenv("LOCKSTEP_CPU_ISA");
  } else {
    setenv("LOCKSTEP_CPU_ISA", kept.c_str(), 1);
  }
  REQUIRE(run.code == 0);
  CHECK(json_lines(run.out).at(0)["processor"] == "baseline");
}

}  // namespace lockstep::apps
