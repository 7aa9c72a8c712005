// Figures and reports of lockstep_bench scaling from fixed rates.
#include "apps/lockstep_bench/scaling.h"

#include <sstream>

#include "apps/golden.h"
#include "support/catch.h"

namespace lockstep::apps {

namespace {

ScalingReport report() {
  ScalingReport report{.kind = "cpu",
                       .processor = "avx2",
                       .cores = 2,
                       .model = "article",
                       .dataset = "synthetic",
                       .batch_size = 128,
                       .rounds = 3,
                       .steps = 100,
                       .warm_up = 10,
                       .strong = {{.replicas = 1, .batch_size = 128, .rates = {1000, 1200, 1100}},
                                  {.replicas = 2, .batch_size = 128, .rates = {2200, 1650, 1760}},
                                  {.replicas = 4,
                                   .batch_size = 128,
                                   .rates = {1100, 1100, 1100},
                                   .above_cores = true}},
                       .weak = {{.replicas = 2, .batch_size = 256, .rates = {10, 40}},
                                {.replicas = 4, .batch_size = 512, .rates = {50, 50}}}};
  derive(report.strong);
  derive(report.weak);
  return report;
}

}  // namespace

TEST_CASE("scaling: medians, spread, speed-up, efficiency", "[apps]") {
  const ScalingReport figures = report();
  CHECK(figures.strong[0].median == 1100);
  CHECK(figures.strong[0].speed_up == 1);
  CHECK(figures.strong[0].efficiency == 1);
  CHECK(figures.strong[1].median == 1760);
  CHECK(figures.strong[1].lowest == 1650);
  CHECK(figures.strong[1].highest == 2200);
  CHECK(figures.strong[1].speed_up == Approx(1.6));
  CHECK(figures.strong[1].efficiency == Approx(0.8));
  CHECK(figures.strong[2].efficiency == Approx(0.25));
  // The first row is what the others refer to, even when it has several replicas.
  CHECK(figures.weak[0].median == 25);
  CHECK(figures.weak[1].speed_up == Approx(2));
  CHECK(figures.weak[1].efficiency == Approx(1));
}

TEST_CASE("scaling: the table flags more replicas than cores", "[apps]") {
  std::ostringstream out;
  write_scaling(out, report());
  test::check_golden("scaling_report.txt", out.str());
}

TEST_CASE("scaling: the JSON has a schema and both kinds apart", "[apps]") {
  const Json event = scaling_event(report());
  CHECK(event["schema"] == 1);
  CHECK(event["event"] == "scaling");
  REQUIRE(event["strong"].size() == 3);
  REQUIRE(event["weak"].size() == 2);
  CHECK(event["strong"][2]["above_cores"] == true);
  CHECK(event["strong"][1]["samples_per_second"] == 1760);
  CHECK(event["weak"][1]["batch_size"] == 512);
}

}  // namespace lockstep::apps
