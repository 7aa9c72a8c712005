// What is not finite, and replicas that are no longer equal, on a CPU.
#include "parallel/replica_checks_cases.h"

namespace lockstep {
namespace {

Devices cpus(int count) {
  return parse_devices("cpu:" + std::to_string(count));
}

TEST_CASE("a value that is not finite is named with step, rank and layer", "[parallel]") {
  for (const int ranks : {1, 3}) test::nan_is_named(cpus(ranks));
}

TEST_CASE("a sample that is not finite is named, or its step is skipped", "[parallel]") {
  for (const int ranks : {1, 2}) test::bad_sample_is_named_or_skipped(cpus(ranks));
}

TEST_CASE("weights that are not finite end training", "[parallel]") {
  for (const int ranks : {1, 3}) test::bad_weights_are_named(cpus(ranks));
}

TEST_CASE("an epoch without a finite step is an error", "[parallel]") {
  test::nothing_left_is_an_error(cpus(2));
}

TEST_CASE("a flipped bit in one replica ends training with step, tensor and ranks", "[parallel]") {
  for (const int ranks : {2, 3}) test::flipped_bit_is_named(cpus(ranks));
}

TEST_CASE("a skipped step moves the data on and nothing else", "[parallel]") {
  // The samples without those of the skipped step, in the same order, make the same weights.
  World world({.devices = cpus(2)});
  std::vector<std::string> warnings;
  World telling({.devices = cpus(2), .log = [&](LogLevel level, std::string_view text) {
                   if (level == LogLevel::warning) warnings.emplace_back(text);
                 }});
  Trainer plain(world, test::disturbed_net(), SoftmaxCrossEntropy{}, Sgd{.lr = 0.01});
  Trainer skips(telling, test::disturbed_net(), SoftmaxCrossEntropy{}, Sgd{.lr = 0.01},
                test::eager(OnNonfinite::skip));
  const BatchOptions batches{.batch_size = 16};
  plain.begin(test::striped_images(96, 8, 4), batches);
  skips.begin(test::striped_images(96, 8, 4), batches);
  plain.run_steps(3);
  skips.run_steps(3);
  test::Disturbance::instance().plant(test::Disturbance::What::output, 0);
  CHECK(skips.run_steps(1) == 1);
  test::Disturbance::instance().plant(test::Disturbance::What::nothing, 0);
  CHECK(skips.model().arena() == plain.model().arena());
  CHECK(skips.step() == 3);
  REQUIRE(warnings.size() == 1);
  CHECK(test::contains(warnings[0], "at step 3 of epoch 0 "));
  CHECK(test::contains(warnings[0], "skipped"));
  skips.run_steps(2);
  CHECK(skips.step() == 5);
  CHECK(skips.epoch() == 0);
  skips.run_steps(1);
  CHECK(skips.epoch() == 1);
}

TEST_CASE("replicas that are equal are never told to differ", "[parallel]") {
  TrainerOptions often;
  often.compare_every = 1;
  TrainerOptions never;
  never.compare_every = 0;
  World world({.devices = cpus(3)});
  Trainer compared(world, test::disturbed_net(), SoftmaxCrossEntropy{}, Adam{}, often);
  Trainer plain(world, test::disturbed_net(), SoftmaxCrossEntropy{}, Adam{}, never);
  for (Trainer* trainer : {&compared, &plain}) {
    trainer->fit(test::striped_images(96, 8, 4), {.epochs = 2, .batch_size = 16});
  }
  CHECK(compared.model().arena() == plain.model().arena());
}

}  // namespace
}  // namespace lockstep
